/* The words of this package (world, piece, depot, chronicle, …) are explained in its README.md. */
export * from './checkers/index.ts'
export type { Entry, ItemRef, Try, Version } from './chronicle.ts'
export { simulate } from './simulate.ts'
export type { SimulateOptions, WorldReport } from './simulate.ts'
