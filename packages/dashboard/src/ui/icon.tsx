import type { ReactNode } from 'react'

/** Drawn on a field of 16 × 16, with a line of 1.5. */
const PATHS = {
  home: 'M2.5 7.2 8 2.5l5.5 4.7v5.3a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1zM6.5 13.5v-4h3v4',
  jobs: 'M3 3.5h10M3 8h10M3 12.5h6',
  inbox: 'M2.5 9.5 4 3.5h8l1.5 6v3h-11zM2.5 9.5h3.2l.8 1.5h3l.8-1.5h3.2',
  alert: 'M8 2.5 14 13H2zM8 6.5v3M8 11.4v.1',
  workers: 'M3 3.5h10v4H3zM3 8.5h10v4H3zM5 5.5h.1M5 10.5h.1',
  queue: 'M2.5 4.5h7M2.5 8h7M2.5 11.5h7M12 4v8m0 0 1.8-1.8M12 12l-1.8-1.8',
  blueprint: 'M5.5 2.5h5v3h-5zM2 10.5h4.5v3H2zM9.5 10.5H14v3H9.5zM8 5.5v2.5M4.2 10.5V8h7.6v2.5',
  clock: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 5v3.2l2.2 1.3',
  bolt: 'M8.8 1.8 3.5 9h4l-.4 5.2L12.5 7h-4z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  run: 'M4.5 3.2 12.5 8l-8 4.8z',
  doc: 'M4 2h5l3 3v9H4zM9 2v3h3M6 8.5h4M6 11h4',
  event: 'M2 8h2.5l1.5-4 3 8 1.5-4H14',
  hook: 'M6.5 9.5 9.5 6.5M7 4.5l1-1a3 3 0 0 1 4.3 4.3l-1 1M9 11.5l-1 1a3 3 0 0 1-4.3-4.3l1-1',
  settings: 'M3 4.5h5M11 4.5h2M3 11.5h2M8 11.5h5M9.5 3v3M6.5 10v3',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.4 10.4l3.1 3.1',
  close: 'M4 4l8 8M12 4l-8 8',
  check: 'M3 8.5 6.5 12 13 4.5',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  left: 'M10 4 6 8l4 4',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  retry: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3',
  stop: 'M4 4h8v8H4z',
  trash: 'M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9',
  sun: 'M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9',
  moon: 'M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  out: 'M6 13.5H3v-11h3M7 8h6.5m0 0L11 5.5M13.5 8 11 10.5',
  fit: 'M2.5 5.5v-3h3M10.5 2.5h3v3M13.5 10.5v3h-3M5.5 13.5h-3v-3',
  star: 'm8 2.3 1.7 3.6 3.9.5-2.9 2.7.8 3.9L8 11l-3.5 2 .8-3.9L2.4 6.4l3.9-.5z',
  person: 'M8 2.5a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2zM3 13.5c.4-2.8 2.3-4 5-4s4.6 1.2 5 4',
  edit: 'M3 13l.6-2.8 7-7a1.3 1.3 0 0 1 1.8 0l.4.4a1.3 1.3 0 0 1 0 1.8l-7 7z',
  hidden:
    'M2 8s2.2-4 6-4c1 0 1.9.3 2.7.7M14 8s-2.2 4-6 4c-1 0-1.9-.3-2.7-.7M6.6 9.4a2 2 0 0 1 2.8-2.8M2.8 13.2 13.2 2.8',
  external: 'M9 2.5h4.5V7M13 3 7.5 8.5M11.5 9v4.5h-9v-9H7',
} as const

export type IconName = keyof typeof PATHS

export function Icon({
  name,
  className = 'size-4',
}: {
  readonly name: IconName
  readonly className?: string
}): ReactNode {
  return (
    <svg
      viewBox="0 0 16 16"
      className={`shrink-0 ${className}`}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}
