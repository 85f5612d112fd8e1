import { GRAPH_NEUTRAL, toDot } from '@impresario/core'
import type { DrawableBlueprint } from '@impresario/core'
import { DrawingThread } from './drawing-thread.ts'

export interface RenderOptions {
  readonly format: 'dot' | 'svg'
  /** The state to highlight, for the graph of a job. */
  readonly current?: string | undefined
}

const thread = new DrawingThread()
/** Drawings by their DOT, the one used last at the end. Callers share a drawing that is under way. */
const drawings = new Map<string, Promise<string>>()
/** One for each state that a graph may highlight, of many blueprints; a drawing of fifty states has about 50 kB. */
const DRAWINGS_MAX = 100
const DRAWING_CHARS_MAX = 262_144

/** Draws a blueprint, without a system binary. The SVG has no background and suits light and dark pages. */
export async function renderGraph(blueprint: DrawableBlueprint, options: RenderOptions): Promise<string> {
  const dot = toDot(blueprint, { current: options.current })
  if (options.format === 'dot') return dot
  return themed(await drawingOf(dot), blueprint.name)
}

async function drawingOf(dot: string): Promise<string> {
  const known = drawings.get(dot)
  const drawing = known ?? thread.draw(dot)
  drawings.delete(dot)
  drawings.set(dot, drawing)
  const [oldest] = drawings.keys()
  if (oldest !== undefined && drawings.size > DRAWINGS_MAX) drawings.delete(oldest)
  try {
    const svg = await drawing
    if (svg.length > DRAWING_CHARS_MAX) drawings.delete(dot)
    return svg
  } catch (error) {
    drawings.delete(dot)
    throw error
  }
}

/**
 * Greys become the text colour of wherever the SVG stands. On its own it follows the system's light
 * or dark theme; `:where` has no weight, so a page that embeds it can set `color` as it likes.
 *
 * The layout reckons with Helvetica; system fonts are up to a sixth wider, so texts are set smaller
 * than the layout believes. Otherwise labels would run into their arrows.
 */
const STYLE = `<style>
:where(svg.impresario-graph){color:#3b434b}
@media (prefers-color-scheme:dark){:where(svg.impresario-graph){color:#c9d1d9}}
svg.impresario-graph{overflow:visible}
svg.impresario-graph text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
svg.impresario-graph .node text{font-size:12px}
svg.impresario-graph .edge text{font-size:9.5px}
</style>`

function themed(svg: string, name: string): string {
  const label = `role="img" aria-label="Graph of ${escapeXml(name)}"`
  const root = svg.indexOf('<svg') + '<svg'.length
  const content = svg.indexOf('>', root) + 1
  const attributes = svg.slice(root, content)
  const drawing = svg.slice(content).replaceAll(GRAPH_NEUTRAL, 'currentColor')
  return `<svg class="impresario-graph" ${label}${attributes}\n${STYLE}${drawing}`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
