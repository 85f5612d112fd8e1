/** The documents app: watches folders, reads documents of many formats, and finds them. */
export * from '@impresario/documents/app'
