import type { IconName } from './ui/icon.tsx'
import type { TextKey } from './text/translate.ts'

export interface Destination {
  readonly to: string
  readonly title: TextKey
  readonly icon: IconName
  /** Leads here after `g`. */
  readonly key: string
}

/** The pages, in groups as the sidebar shows them. */
export const PLACES: readonly (readonly [group: TextKey | undefined, places: readonly Destination[]])[] = [
  [
    undefined,
    [
      { to: '/', title: 'nav.home', icon: 'home', key: 'h' },
      { to: '/jobs', title: 'nav.jobs', icon: 'jobs', key: 'j' },
      { to: '/approvals', title: 'nav.approvals', icon: 'inbox', key: 'a' },
      { to: '/quarantine', title: 'nav.quarantine', icon: 'alert', key: 'q' },
    ],
  ],
  [
    'nav.work',
    [
      { to: '/blueprints', title: 'nav.blueprints', icon: 'blueprint', key: 'b' },
      { to: '/workers', title: 'nav.workers', icon: 'workers', key: 'w' },
      { to: '/queues', title: 'nav.queues', icon: 'queue', key: 'u' },
    ],
  ],
  [
    'nav.clockwork',
    [
      { to: '/schedules', title: 'nav.schedules', icon: 'clock', key: 's' },
      { to: '/automations', title: 'nav.automations', icon: 'bolt', key: 't' },
      { to: '/runs', title: 'nav.runs', icon: 'run', key: 'r' },
    ],
  ],
  [
    'nav.records',
    [
      { to: '/documents', title: 'nav.documents', icon: 'doc', key: 'd' },
      { to: '/events', title: 'nav.events', icon: 'event', key: 'e' },
      { to: '/webhooks', title: 'nav.webhooks', icon: 'hook', key: 'o' },
      { to: '/agents', title: 'nav.agents', icon: 'person', key: 'c' },
      { to: '/settings', title: 'nav.settings', icon: 'settings', key: 'i' },
    ],
  ],
]

export const ALL_PLACES: readonly Destination[] = PLACES.flatMap(([, places]) => places)
