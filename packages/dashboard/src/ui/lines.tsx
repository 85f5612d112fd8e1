import type { ReactNode } from 'react'

export interface Line {
  readonly name: string
  readonly className: string
  /** Undefined where nothing was measured. */
  readonly values: readonly (number | undefined)[]
}

const HEIGHT = 72
const WIDTH = 300

/** A small chart of lines over equal steps of time. */
export function Lines({
  lines,
  label,
  written,
  hasScale = true,
}: {
  readonly lines: readonly Line[]
  readonly label: string
  /** A value in words. */
  readonly written: (value: number) => string
  /** Whether the greatest value stands beside it. */
  readonly hasScale?: boolean
}): ReactNode {
  const all = lines.flatMap(({ values }) => values.filter((value) => value !== undefined))
  const most = Math.max(1, ...all)
  return (
    <figure className="relative">
      <svg
        role="img"
        aria-label={label}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="h-18 w-full border-b border-line"
      >
        {lines.map(({ name, className, values }) => (
          <g key={name} className={className}>
            <path d={pathOf(values, most)} fill="none" strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
            {values.map((value, at) =>
              value === undefined ? null : (
                <circle
                  key={at}
                  cx={placeOf(at, values.length)}
                  cy={heightOf(value, most)}
                  r="1.6"
                  strokeWidth="0"
                  fill="currentColor"
                >
                  <title>{`${name}: ${written(value)}`}</title>
                </circle>
              ),
            )}
          </g>
        ))}
      </svg>
      {hasScale && all.length > 0 ? (
        <span className="num absolute top-0 left-0 text-xs text-faint">{written(most)}</span>
      ) : null}
    </figure>
  )
}

function placeOf(at: number, count: number): number {
  return ((at + 0.5) / Math.max(1, count)) * WIDTH
}

function heightOf(value: number, most: number): number {
  return HEIGHT - 4 - (value / most) * (HEIGHT - 10)
}

/** A line ends where a value is missing. */
function pathOf(values: Line['values'], most: number): string {
  let path = ''
  for (const [at, value] of values.entries()) {
    if (value === undefined) continue
    path += `${values[at - 1] === undefined ? 'M' : 'L'}${placeOf(at, values.length).toFixed(1)},${heightOf(value, most).toFixed(1)}`
  }
  return path
}
