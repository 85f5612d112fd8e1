export type Revision = '2025-11-25' | '2026-07-28'

/**
 * Scenarios about what this server does not offer, or does not declare. All others have to pass. A scenario that begins to
 * pass is named here no longer.
 */
export const NOT_OFFERED: Readonly<Record<string, string>> = {
  'tools-call-sampling': 'the server never asks for the model of its client',
  'input-required-result-basic-sampling': 'the same',
  'input-required-result-capability-check': 'the same: it wants a question to the model in place of one to the person',
  'input-required-result-basic-list-roots': 'the server never asks for the directories of its client',
  'input-required-result-multiple-input-requests': 'the same, and for the model of the client',
  'input-required-result-non-tool-request': 'a prompt of the suite, which asks; our prompts are fixed texts',
  'prompts-get-simple': 'a prompt of the suite; our prompts are our own',
  'prompts-get-with-args': 'the same',
  'prompts-get-embedded-resource': 'the same',
  'prompts-get-with-image': 'the same',
  'resources-read-text': 'a resource of the suite; our resources are blueprints, runs and documents',
  'resources-read-binary': 'the same',
  'resources-templates-read': 'the same',
  'resources-subscribe': 'resources cannot be subscribed to, and the server declares no such capability',
  'resources-unsubscribe': 'the same',
  'http-custom-header-server-validation': 'no tool of the server wants its arguments in headers',
}

/** Scenarios that must have run: a suite that leaves out what matters shows nothing. */
export const MUST_RUN: Readonly<Record<Revision, readonly string[]>> = {
  '2025-11-25': [
    'server-initialize',
    'server-session-lifecycle',
    'ping',
    'tools-list',
    'tools-call-simple-text',
    'tools-call-error',
    'tools-call-with-progress',
    'tools-call-with-logging',
    'logging-set-level',
    'completion-complete',
    'tools-call-elicitation',
    'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
    'json-schema-2020-12',
    'dns-rebinding-protection',
  ],
  '2026-07-28': [
    'server-stateless',
    'tools-list',
    'caching',
    'http-header-validation',
    'sep-2164-resource-not-found',
    'input-required-result-basic-elicitation',
    'input-required-result-request-state',
    'input-required-result-multi-round',
    'input-required-result-tampered-state',
    'tasks-lifecycle',
    'tasks-capability-negotiation',
    'tasks-wire-fields',
    'tasks-request-state-removal',
    'tasks-mrtr-input',
    'tasks-request-headers',
    'tasks-dispatch-and-envelope',
    'tasks-status-notifications',
    'tasks-required-task-error',
    'tasks-mrtr-composition',
  ],
}
