import type { ConfigKey } from './config-keys.ts'

/** Settings of the interface that clients of the old automation system know. */
export interface OldApiSettings {
  readonly oldApiEnabled: boolean
}

export const OLD_API_KEYS: Readonly<Record<keyof OldApiSettings, ConfigKey>> = {
  oldApiEnabled: {
    names: ['OLD_API_ENABLED'],
    type: 'switch',
    default: true,
    description: 'Serve clients of the old automation system at /tasks, /runs, /events, /agents, /health and /tools.',
  },
}
