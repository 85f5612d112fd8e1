import type { ReactNode } from 'react'

export interface Column {
  readonly label: string
  readonly good: number
  readonly bad: number
}

const HEIGHT = 96

/** A small chart of columns: what went well, and on top what did not. */
export function Columns({
  columns,
  label,
}: {
  readonly columns: readonly Column[]
  readonly label: string
}): ReactNode {
  const most = Math.max(1, ...columns.map(({ good, bad }) => good + bad))
  const width = 100 / Math.max(1, columns.length)
  return (
    <figure>
      <svg
        role="img"
        aria-label={label}
        viewBox={`0 0 100 ${HEIGHT}`}
        preserveAspectRatio="none"
        className="h-24 w-full border-b border-line"
      >
        {columns.map(({ label: name, good, bad }, index) => {
          const goodHeight = (good / most) * (HEIGHT - 4)
          const badHeight = (bad / most) * (HEIGHT - 4)
          return (
            <g key={name + String(index)}>
              <title>{`${name}: ${good}${bad > 0 ? ` + ${bad}` : ''}`}</title>
              <rect x={index * width} y={0} width={width} height={HEIGHT} fill="transparent" />
              <rect
                x={index * width + width * 0.15}
                y={HEIGHT - Math.max(goodHeight, 1)}
                width={width * 0.7}
                height={Math.max(goodHeight, 1)}
                className={good === 0 ? 'fill-raise' : 'fill-fill'}
              />
              <rect
                x={index * width + width * 0.15}
                y={HEIGHT - goodHeight - badHeight}
                width={width * 0.7}
                height={badHeight}
                className="fill-bad"
              />
            </g>
          )
        })}
      </svg>
      <figcaption className="num mt-1 flex justify-between text-xs text-faint">
        <span>{columns[0]?.label}</span>
        <span>{columns[Math.floor(columns.length / 2)]?.label}</span>
        <span>{columns.at(-1)?.label}</span>
      </figcaption>
    </figure>
  )
}
