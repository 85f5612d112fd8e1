/** Runs blueprints in memory on a virtual clock, with workers that are functions and with injected faults. */
export * from '@impresario/testing'
