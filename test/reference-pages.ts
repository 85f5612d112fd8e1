import {
  ERROR_CODES,
  ERROR_MEANINGS,
  ImpresarioError,
  LIMITS,
  TASK_ERROR_CODES,
  JOB_ERROR_CODES,
  taskErrorKind,
} from '@impresario/protocol'
import type { TaskErrorCode, TaskErrorKind } from '@impresario/protocol'
import { describeConfig, METRICS } from '@impresario/server'
import type { MetricSpec } from '@impresario/server'
import { describeEnvironment } from '@impresario/worker'

/*
 * The pages of docs/reference that are made from the code: names and numbers come from there, and the sentences are
 * here. The types see to it that nothing is left without its sentence.
 */

const GENERATED = '<!-- Made from the code by `npm run docs`. Change the code, not this page. -->'

export function page(title: string, parts: readonly string[]): string {
  return [`# ${title}`, GENERATED, ...parts].join('\n\n').concat('\n')
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

export function workerConfigurationPage(): string {
  return page('Configuration of a worker', [
    'What the [TypeScript SDK](../../packages/worker) reads from the environment when a worker is made. What the program\n' +
      'gives to `createWorker` goes before it. A value that makes no sense stops the start, with the name of its variable; an\n' +
      'empty variable counts as not set. Times are in seconds, and fractions are allowed.',
    describeEnvironment().trimEnd(),
    'Every `WORKER_EXTRA_<NAME>` is told to the orchestrator as a property `<name>` that tasks may require; its value is read\n' +
      'as JSON where it is JSON, and as text otherwise.',
    'Three defaults differ from those of earlier workers: there is no token that everybody knows, results are kept until the\n' +
      'orchestrator has taken them, and nothing listens on a port unless `WORKER_PORT` names one.',
  ])
}

export function configurationPage(): string {
  return page('Configuration', [
    'Every key can stand in the environment, or in lower case in a file: `impresario.toml` or `impresario.json` in the\n' +
      'directory in which the server starts, or the file that `IMPRESARIO_CONFIG` names. The environment goes before the\n' +
      'file, and the file before the default. A bad value and an unknown key in the file stop the start, with a sentence\n' +
      'that says why. An empty variable counts as not set.',
    describeConfig().trimEnd(),
    'A server that other machines can reach (`API_HOST` is not a loopback address) does not start without a token for its\n' +
      'clients, and takes no worker without a token.',
    'Numbers that are not here are [limits](limits.md); a blueprint sets [its own](../guide/blueprints.md#time-and-tries).',
  ])
}

export function metricsPage(): string {
  const rows = Object.entries<MetricSpec>(METRICS).map(([name, { type, labels, help, isShared }]) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', '),
    isShared === true ? `${help} The same on every instance.` : help,
  ])
  return page('Metrics', [
    'What a server shows at `/metrics` and `/_public/metrics`, in the text format of Prometheus. [Monitoring](../guide/monitoring.md)\n' +
      'has the alerts and dashboards that use them.',
    'Counters and histograms count what this instance has done: sum them over the instances. Gauges that are the same on every\n' +
      'instance come from the shared storage: take their maximum. They are read every five seconds, and a scrape waits for nothing.',
    'A metric has at most 200 series. Further combinations of labels are counted together, with `other` as their labels. Runs of\n' +
      'automations have the blueprint `automation`.',
    table(['name', 'type', 'labels', 'meaning'], rows),
  ])
}

const TASK_ERROR_MEANINGS: Readonly<Record<TaskErrorCode, string>> = {
  TRANSIENT_ERROR: 'It may work next time. Also what every unknown or missing code counts as.',
  PERMANENT_ERROR: 'It will never work like this.',
  INVALID_INPUT_ERROR: 'The params are wrong.',
  INTEGRITY_MISMATCH_ERROR: 'A file does not match its checksum.',
  RESOURCE_EXHAUSTED_ERROR: 'The worker ran out of a resource, such as memory or disk space.',
  TIMEOUT_ERROR: 'It took too long. Also the code of the job when a dispatch, run or result timeout ends its task.',
  DEPENDENCY_ERROR: 'A dependency of the task failed.',
  SECURITY_ERROR: 'The worker refused the task for security reasons.',
  INTERNAL_ERROR: 'An internal error of the worker.',
  CONTRACT_VIOLATION_ERROR: 'The result of the handler does not match its contract.',
  LIMIT_EXCEEDED_ERROR: 'A limit of the worker was exceeded.',
  DEPENDENCY_MISSING_ERROR: 'A dependency of the task is not available yet.',
  LATE_RESULT: 'The work was done too late.',
}

const RETRIES = { never: 'no', now: 'at once', later: 'after `Retry-After`' } as const

const CONSEQUENCES: Readonly<Record<TaskErrorKind, string>> = {
  transient: 'retried, then quarantine',
  permanent: 'quarantine',
  invalid_input: 'the job fails',
  timeout: 'the job fails; with `retryTimeouts` the task is retried first',
}

export function errorsPage(): string {
  const codes = ERROR_CODES.map((code) => {
    const { status, retry } = new ImpresarioError(code, '')
    const { meaning, fix } = ERROR_MEANINGS[code]
    return [`\`${code}\``, String(status), RETRIES[retry], meaning, fix]
  })
  const taskCodes = TASK_ERROR_CODES.map((code) => [
    `\`${code}\``,
    CONSEQUENCES[taskErrorKind(code)],
    TASK_ERROR_MEANINGS[code],
  ])
  return page('Errors', [
    'All errors have the same format. `code` is stable. `error` is a message for people and may change.',
    '```json\n{ "error": "Job not found", "code": "JOB_NOT_FOUND", "type": "urn:impresario:error:JOB_NOT_FOUND",\n' +
      '  "title": "Job not found", "status": 404, "detail": "Job not found" }\n```',
    'With `Accept: application/problem+json` the response has that content type (RFC 9457). In a batch, each refused item has\n' +
      'its own `error` and `code`.',
    table(['code', 'status', 'try again?', 'meaning', 'what to do'], codes),
    '## What workers report',
    'A worker that reports `failure` sends one of these codes. The code decides whether the task is retried. After the last\n' +
      'attempt the job takes the transition `failure` (for `TIMEOUT_ERROR`, `timeout` first). Without such a transition, the\n' +
      'second column applies.',
    table(['code', 'what follows', 'meaning'], taskCodes),
    '## Why a job failed',
    'The `error_code` of a failed, cancelled or quarantined job is one of the codes above if a task was the reason. Otherwise it is\n' +
      'one of these. `error_message` describes the error.',
    table(
      ['code', 'the job is', 'meaning, and what to do'],
      JOB_ERROR_CODES.map((code) => [`\`${code}\``, ...JOB_ERROR_MEANINGS[code]]),
    ),
  ])
}

const JOB_ERROR_MEANINGS: Readonly<Record<(typeof JOB_ERROR_CODES)[number], readonly [string, string]>> = {
  HANDLER_FAILED: [
    'quarantined',
    'A handler threw in every attempt that its blueprint allows. Admins can see the stack. Correct the handler and retry the job.',
  ],
  HANDLER_NEVER_ENDED: [
    'quarantined',
    'A handler was started several times and never returned: it ended the process or blocked it. Correct it before you retry the job.',
  ],
  UNHANDLED_STATUS: ['failed', 'A worker ended a task with a status that `transitions` does not have. Add it.'],
  UNKNOWN_STATE: [
    'quarantined',
    'A transition leads to a state that the blueprint does not have. Add the state, or correct the transition.',
  ],
  LOOP_LIMIT: [
    'quarantined',
    'The job entered more states than `transitionsMax` allows. Check for a loop, or raise the limit.',
  ],
  EXECUTION_TIMEOUT: ['failed', 'The job did not end within its execution timeout.'],
  CHILD_FAILED: ['failed', 'A child job did not finish; the message has its error.'],
  CHILD_QUARANTINED: [
    '–',
    'A child job waits for a person, and `transitions` has `quarantined`. Only in `context.failure`.',
  ],
  CHILD_TOO_DEEP: [
    'quarantined',
    'Children started children, more levels deep than the [limit](limits.md). Check whether a blueprint runs itself.',
  ],
  FAN_OUT_TOO_LARGE: ['quarantined', 'More branches than the [limit](limits.md). Split the work over child jobs.'],
  REJECTED: ['–', 'A person decided `rejected`. Only in `context.failure`: the job goes where the decision leads.'],
  EVENT_TIMEOUT: ['failed', 'An event did not come in time, and `transitions` has no `timeout`.'],
  APPROVAL_EXPIRED: ['failed', 'No decision was made in time, and `transitions` has no `expired`.'],
  BLUEPRINT_GONE: [
    'quarantined',
    'The blueprint, or the version that the job began with, is not loaded. Load it again and retry the job, or give the new version a `migrate`.',
  ],
  CANCELLED: ['cancelled', 'A client cancelled the job, or its worker cancelled the task. The message says who.'],
}

const LIMIT_MEANINGS: Readonly<Record<keyof typeof LIMITS, string>> = {
  bodyBytesMax: 'Body of a request, unless `BODY_LIMIT_BYTES` says otherwise.',
  jsonDepthMax: 'Levels of a JSON body.',
  jsonKeysMax: 'Keys of a JSON body, or of one item of a batch; ten times as many in the whole batch.',
  jsonContainersMax:
    'Objects and lists of a JSON body, or of one item of a batch; five times as many in the whole batch.',
  jsonValuesMax: 'Values of any kind in a JSON body; twice as many in a batch.',
  jsonStringBytesMax: 'One string of a JSON body.',
  jsonNumberCharsMax: 'Digits, sign, point and exponent of one number of a JSON body.',
  batchItemsMax: 'Jobs in one batched create, tasks in one batched poll, results in one batched post.',
  handoutBytesMax: 'What the tasks of one batched poll take in memory, about; the others come with the next poll.',
  headersTimeoutMs: 'Time for the headers of a request to arrive.',
  requestTimeoutMs: 'Time for a whole request to arrive.',
  keepAliveMs: 'How long an idle connection is kept.',
  answerStallMs: 'How long nothing of an answer may be read; then the connection is cut.',
  answerBytesPerSecondMin: 'Pace at which a long answer must be read on average.',
  answersBytesMax: 'Answers that wait for their readers, all together; beyond it the slowest reader is cut off.',
  longPollMs: 'How long a poll is held by default.',
  longPollMsMax: 'Longest time that a poll or a wait is held.',
  fanOutMax: 'Branches of one fan-out; more quarantine the job.',
  branchResultsBytesMax:
    'Data that the branches of one fan-out may leave together; a branch beyond it counts as failed.',
  transitionsMaxDefault: 'States that a job may enter, unless configuration or blueprint say otherwise.',
  transitionsMaxCeiling: 'The most that they may say.',
  contextBytesMax: 'State history of a job as JSON.',
  childDepthMax: 'Children of children of children.',
  handlerMs: 'Time of one handler run.',
  handlerAttemptsMax: 'Runs of a handler that throws, unless configuration or blueprint say otherwise.',
  taskAttemptsMax: 'Tries of a task, unless configuration, blueprint or task say otherwise.',
  turnBegunMax:
    'How often a handler is begun that never returns because the process ends first; then its job is quarantined.',
  turnLostMax:
    'How often a handler returns and the process ends before the result is stored; then its job is quarantined.',
  taskDeliveriesMax: 'How often one try is handed out when every worker that has it falls silent.',
  runTimeoutMs: 'Default time limit of a task from its pickup.',
  backoffMs: 'First wait between tries; it doubles with each one.',
  backoffMsMax: 'Longest wait between tries.',
  trailEntriesMax: 'Notable moments that a job’s record keeps; the oldest are dropped.',
  handlerErrorCharsMax: 'What is kept of the message of a handler’s error.',
  handlerStackCharsMax: 'What is kept of its stack.',
  taskErrorCharsMax: 'What is kept of the message of a worker’s error.',
  taskStackCharsMax: 'What is kept of the stack that a worker sends with it.',
  workerEventsMax:
    'Events that workers may send while a job is in one state; those with a transition are taken beyond it.',
  workerEventIdsMax: 'Ids of them by which a repeated one is known.',
  eventBytesMax: 'payload of one event for a job',
  keptEventsMax: 'events that wait for their job, or under one topic and key',
  keptEventsBytesMax: 'payloads of the events that wait for one job',
  inboxBytesMax: 'payloads of the events that wait under one topic and key',
  knownEventsMax: 'ids of events that a job remembers',
  keptEventMs: 'how long an event that was sent by key is kept',
  changeStreamsMax: 'streams of changes that are open in one process',
  changeStreamsPerClientMax: 'streams of changes of one client in one process',
  changesKeptMax: 'changes kept for streams that come back',
  changesBytesMax: 'what these take of the memory',
  changeMessageBytesMax: 'one message of a stream of changes',
  eventReachStep: 'jobs that one event reaches in one step',
  eventTypeCharsMax: 'Type of an event.',
  remindersMax: 'Reminders of one request for approval.',
  remindMsMin: 'Shortest time until a reminder.',
  webhookResultCharsMax: 'Result of a job in a webhook; a longer one is left out (`result_omitted`).',
  searchTextCharsMax: 'What a list of jobs is searched in, for each of them.',
  idempotencyKeyMs: 'How long an idempotency key is known, unless the retention says otherwise.',
  idempotencyKeyCharsMax: 'Idempotency key.',
  signatureWindowMs: 'How far the clock of a worker that signs may be off.',
  socketFrameBytesMax: 'One frame of a worker’s socket; a larger one closes it with 1009.',
  socketFramesPerSecond: 'Frames of one socket in a second; more are dropped, and a flood closes it.',
  socketBufferBytesMax: 'What may wait for a worker that does not read; then its socket is closed with 1013.',
  socketBytesPerSecond: 'What one socket may send, on average between two pings; more closes it.',
  socketPingMs: 'How often sockets are pinged; who has not answered by the next one is cut off.',
  socketMistakesMax: 'Frames that are no messages, before a socket is closed.',
  socketsUnboundMax: 'Sockets that have not said whose they are.',
  workerNamesMax: 'Skills, models and the like that one worker may name, of each kind.',
  workerTasksMax: 'Tasks that a heartbeat may name.',
  workerRecordCharsMax: 'What one worker may say of itself, as JSON.',
  workersMax: 'Workers that may be alive at the same time.',
  eventSchemaCharsMax: 'A schema that a worker declares for its events.',
  eventSchemaRefsMax: 'References in it.',
  eventSchemasMax: 'Such schemas that are kept compiled.',
  eventSchemasOfTypeMax: 'Different schemas of one worker for the same event.',
  eventCheckCharsMax: 'Characters of such a schema times characters of an event.',
  pageSizeDefault: 'Default number of jobs on one page of a list.',
  pageSizeMax: 'The most that may be named.',
  pageBytesMax: 'One page of any list, as JSON; what is longer goes on on the next page.',
  listedFieldBytesMax:
    'A field of a job in a list, unless `fields` names it; a longer one is left out (`omitted_fields`).',
  pageReadBytesMax: 'What is read from the storage for one page of jobs; then it ends before its limit.',
  pagePieceBytes: 'What is read of it at once.',
  pagePieceLooks: 'Records that a filter leaves out, looked through at once.',
  workersPageMax: 'Workers on one page.',
  pageOffsetMax: 'Jobs that an older client may leave out with `offset`.',
  historyPageMax: 'Events of a job or a worker in one answer.',
  eventPageDefault: 'Events of all jobs in one answer, unless `limit` says otherwise.',
  historySpansMax: 'Hours or days that are counted in one answer.',
  historySnapshotBytes:
    'Initial data and dictionary of a job that the history keeps with an event, unless `HISTORY_SNAPSHOT_BYTES` says otherwise.',
  historyStepBytesMax: 'The same for all events of one step, such as the tasks of a fan-out.',
  historyWorkerBytesMax: 'What the history keeps of a worker with an event.',
  commentCharsMax: 'Comment of a decision.',
  capabilityMs: 'How long a link to an open question is good, where the question has no end of its own.',
  identifierCharsMax: 'Names of blueprints, states, tasks and workers.',
  expressionCharsMax: 'Condition of a handler.',
  expressionDepthMax: 'Levels of brackets in a condition.',
  fileKeyBytesMax: 'Name of a file with `jobs/<job id>/` in front, in UTF-8.',
  filePartBytes: 'Part of a file on its way to S3. Two of them are in memory for each large upload.',
  fileBuffersBytesMax: 'What all uploads to S3 together hold in memory.',
  fileOperationsWaitingMax: 'Operations on files that wait for one of `S3_MAX_CONCURRENCY` places.',
  fileWaitMs: 'How long an operation on a file waits for its place.',
  fileStallMs: 'Silence after which an upload or a download counts as broken off.',
  fileJsonBytesMax: 'A file that `readJson` reads.',
  jobLogLinesMax: 'Lines of `context.log` and `task.log` that are kept with a job; the newest stay.',
  jobLogBytesMax: 'The same, in bytes.',
  jobLogMessageCharsMax: 'The message of one line; what is longer is cut.',
  jobLogFieldsBytesMax: 'The fields of one line; larger ones are left out.',
  jobLogPendingBytesMax:
    'Lines of all jobs of one instance that wait to be stored. Further lines are only in the log of the server.',
  taskLogLinesMax: 'Lines of `task.log` that are sent with a result; the newest stay.',
  taskLogBytesMax: 'The same, in bytes.',
}

export function limitsPage(): string {
  const rows = limitNames().map((name) => [`\`${name}\``, LIMITS[name].toLocaleString('en-US'), LIMIT_MEANINGS[name]])
  return page('Limits', [
    'What is over a limit is refused, never queued without end: 413 for a body that is too large, 422 for one that is too\n' +
      'deep or too wide, a handler error or the quarantine for what a blueprint asks. `Ms` means milliseconds.',
    table(['name', 'limit', 'of what'], rows),
    'They stand in `packages/protocol/src/limits.ts`, each with its reason where it is not plain.',
  ])
}

/** Type boundary: the keys of a constant are the names of its type. */
function limitNames(): readonly (keyof typeof LIMITS)[] {
  return Object.keys(LIMITS) as (keyof typeof LIMITS)[]
}
