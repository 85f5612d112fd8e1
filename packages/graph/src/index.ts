export { renderGraph } from './render.ts'
export type { RenderOptions } from './render.ts'
