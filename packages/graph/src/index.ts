export { GraphTooLargeError } from './drawing-thread.ts'
export { renderGraph } from './render.ts'
export type { RenderOptions } from './render.ts'
