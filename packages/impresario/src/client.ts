export * from '@impresario/client'
