export * from '@impresario/worker'
