import { stripVTControlCharacters } from 'node:util'
import type { Screen } from './screen.ts'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => string
  readonly align?: 'left' | 'right'
}

/** Rows under their titles, in columns as wide as they need to be. Cells may be coloured. */
export function table<Row>(screen: Screen, rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = rows.map((row) => columns.map((column) => column.cell(row)))
  const widths = columns.map((column, index) =>
    Math.max(column.title.length, ...cells.map((line) => visibleWidth(line[index] ?? ''))),
  )
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, index) => pad(text, widths[index] ?? 0, columns[index]?.align))
      .join('  ')
      .trimEnd()
  const head = line(columns.map((column) => column.title.toUpperCase()))
  return [screen.paint('dim', head), ...cells.map(line)].join('\n')
}

/** Names and values below each other, the values in one column. */
export function facts(
  screen: Screen,
  entries: readonly (readonly [name: string, value: string | undefined])[],
): string {
  const known = entries.filter(([, value]) => value !== undefined && value !== '')
  const width = Math.max(0, ...known.map(([name]) => name.length))
  return known.map(([name, value]) => `${screen.paint('dim', name.padEnd(width))}  ${value}`).join('\n')
}

export function visibleWidth(text: string): number {
  return stripVTControlCharacters(text).length
}

export function pad(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - visibleWidth(text)))
  return align === 'right' ? space + text : text + space
}
