/** A scenario of the suite that concerns this server. */
export interface Scenario {
  readonly name: string
  readonly revision: '2025-11-25' | '2026-07-28' | undefined
}

const BOTH = [
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'resources-list',
  'prompts-list',
  'dns-rebinding-protection',
] as const

const OLDER = ['server-initialize', 'ping'] as const

const NEWER = ['sep-2164-resource-not-found', 'caching', 'http-header-validation'] as const

const TASKS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
] as const

export const SCENARIOS: readonly Scenario[] = [
  ...[...BOTH, ...OLDER].map((name) => ({ name, revision: '2025-11-25' as const })),
  ...[...BOTH, ...NEWER].map((name) => ({ name, revision: '2026-07-28' as const })),
  ...TASKS.map((name) => ({ name, revision: undefined })),
]
