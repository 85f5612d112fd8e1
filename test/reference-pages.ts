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
    'The [TypeScript SDK](../../packages/worker) reads these environment variables when a worker is created. Options of\n' +
      '`createWorker` take precedence. If a value is invalid, the worker does not start; the error names the variable. An empty\n' +
      'variable counts as not set. Times are in seconds, and fractions are allowed.',
    describeEnvironment().trimEnd(),
    'Every `WORKER_EXTRA_<NAME>` becomes a property `<name>` of the worker that tasks can require. Its value is parsed as JSON\n' +
      'if possible, and is a string otherwise.',
    'Three defaults differ from those of Avtomatika workers: there is no well-known token, results are kept until the\n' +
      'orchestrator has accepted them, and the worker listens on a port only if `WORKER_PORT` is set.',
  ])
}

export function configurationPage(): string {
  return page('Configuration', [
    'Set a key in the environment, or in lower case in a file: `impresario.toml` or `impresario.json` in the working\n' +
      'directory of the server, or the file that `IMPRESARIO_CONFIG` names. The environment takes precedence over the file, and\n' +
      'the file over the default. If a value is invalid, or the file has an unknown key, the server does not start, and the\n' +
      'error says why. An empty variable counts as not set.',
    describeConfig().trimEnd(),
    'A server that other machines can reach (`API_HOST` is not a loopback address) does not start without a client token, and\n' +
      'accepts no worker without a token.',
    'Fixed numbers are listed in [Limits](limits.md). A blueprint sets [its own](../guide/blueprints.md#timeouts-and-retries).',
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
    'The metrics at `/metrics` and `/_public/metrics`, in the Prometheus text format. [Monitoring](../guide/monitoring.md)\n' +
      'has alerts and dashboards that use them.',
    'Counters and histograms are per instance: sum them over the instances. Gauges that are the same on every instance come\n' +
      'from the shared storage: take their maximum. They are updated every five seconds, and a scrape never waits for them.',
    'A metric has at most 200 series. Further combinations of labels are counted together, with the label value `other`. Runs\n' +
      'of automations have the blueprint `automation`.',
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
  bodyBytesMax: 'Request body. `BODY_LIMIT_BYTES` overrides it.',
  jsonDepthMax: 'Nesting depth of a JSON body.',
  jsonKeysMax: 'Keys in a JSON body, or in one item of a batch; ten times as many in a whole batch.',
  jsonContainersMax:
    'Objects and arrays in a JSON body, or in one item of a batch; five times as many in a whole batch.',
  jsonValuesMax: 'Values of any type in a JSON body; twice as many in a batch.',
  jsonStringBytesMax: 'A single string in a JSON body.',
  jsonNumberCharsMax: 'Characters of a single number in a JSON body.',
  batchItemsMax: 'Jobs in one batched create, tasks in one batched poll, results in one batched post.',
  handoutBytesMax:
    'Approximate size in memory of the tasks of one batched poll; the remaining tasks come with the next poll.',
  headersTimeoutMs: 'Time to receive the headers of a request.',
  requestTimeoutMs: 'Time to receive a whole request.',
  keepAliveMs: 'Time that an idle connection is kept open.',
  answerStallMs: 'Time without progress after which a response that the client does not read is aborted.',
  answerBytesPerSecondMin: 'Minimum average rate at which a client must read a long response.',
  answersBytesMax: 'Total size of buffered responses; beyond it the slowest reader is disconnected.',
  longPollMs: 'Default duration of a long poll.',
  longPollMsMax: 'Maximum duration of a long poll or wait.',
  fanOutMax: 'Branches of a fan-out; more send the job to quarantine.',
  branchResultsBytesMax: 'Total result data of the branches of a fan-out; a branch beyond it counts as failed.',
  transitionsMaxDefault:
    'Default number of states that a job can enter. The configuration or the blueprint can change it.',
  transitionsMaxCeiling: 'Maximum value of that setting.',
  endedResultsBytesMax: 'Results of calls that an ended job keeps beside its state history, to be run again.',
  contextBytesMax: 'State history of a job, as JSON; of values that are not kept in the store of files.',
  offloadedHistoryBytesMax: 'State history of a job with the values that are kept in the store of files.',
  offloadedValueBytesMin: 'Smaller values of a state history always stay in the record.',
  childDepthMax: 'Nesting depth of child jobs.',
  handlerMs: 'Duration of one handler run.',
  handlerAttemptsMax:
    'Default number of attempts of a handler that throws. The configuration or the blueprint can change it.',
  taskAttemptsMax: 'Default number of attempts of a task. The configuration, the blueprint or the task can change it.',
  turnBegunMax: 'Runs of a handler that never returned because the process ended; then the job goes into quarantine.',
  turnLostMax:
    'Runs of a handler that returned, but whose result was lost because the process ended; then the job goes into quarantine.',
  taskDeliveriesMax: 'Deliveries of one attempt if the leases of its workers expire.',
  runTimeoutMs: 'Default run timeout of a task, counted from its pickup.',
  backoffMs: 'Wait before the first retry; it doubles with each one.',
  backoffMsMax: 'Longest wait between attempts.',
  trailEntriesMax: 'Entries in the trail of a job’s record; the oldest are dropped.',
  handlerErrorCharsMax: 'Stored message of a handler’s error.',
  handlerStackCharsMax: 'Stored stack of a handler’s error.',
  taskErrorCharsMax: 'Stored message of a worker’s error.',
  taskStackCharsMax: 'Stored stack of a worker’s error.',
  workerEventsMax:
    'Events that workers can send while a job is in one state; events with a transition are accepted beyond it.',
  workerEventIdsMax: 'Event ids that are remembered to recognise duplicates.',
  eventBytesMax: 'Payload of an event for a job.',
  keptEventsMax: 'Events that are kept for one job, or under one topic and key.',
  keptEventsBytesMax: 'Total payload of the events that are kept for one job.',
  inboxBytesMax: 'Total payload of the events that are kept under one topic and key.',
  knownEventsMax: 'Event ids that a job remembers.',
  keptEventMs: 'Time that an event sent by key is kept.',
  viewsMax: 'Saved views of one caller.',
  viewsBytesMax: 'Bytes of all saved views of one caller.',
  viewNameCharsMax: 'Characters of the name of a saved view.',
  viewFiltersMax: 'Filters of a saved view.',
  viewValueCharsMax: 'Characters of one filter of a saved view.',
  waitsBytesMax:
    'Memory that waiting requests of one process use, such as long polls; at most a quarter of its heap. Further ones get 503.',
  changeStreamsMax: 'Open change streams in one process.',
  changeStreamsPerClientMax: 'Open change streams of one client in one process.',
  changesKeptMax: 'Changes that are kept for streams that reconnect.',
  changesBytesMax: 'Memory that these changes use.',
  changeMessageBytesMax: 'One message of a change stream.',
  eventReachStep: 'Jobs that one event reaches in one step.',
  eventTypeCharsMax: 'Type of an event.',
  remindersMax: 'Reminders of one approval.',
  remindMsMin: 'Shortest time until a reminder.',
  webhookResultCharsMax: 'Result of a job in a webhook; a longer one is omitted (`result_omitted`).',
  endpointsMax: 'Webhook endpoints of one client; beyond it none can be declared, and no secret of a new one replaced.',
  searchTextCharsMax: 'Searchable text of each job in a list.',
  idempotencyKeyMs: 'Default time that an idempotency key is remembered. The retention can change it.',
  idempotencyKeyCharsMax: 'Idempotency key.',
  signatureWindowMs: 'Allowed clock difference of a worker that signs its messages.',
  socketFrameBytesMax: 'A frame on a worker’s WebSocket; a larger one closes the connection with 1009.',
  socketFramesPerSecond: 'Frames per second on one WebSocket; more are dropped, and a flood closes the connection.',
  socketBufferBytesMax: 'Data buffered for a worker that does not read; beyond it the connection is closed with 1013.',
  socketBytesPerSecond: 'Average incoming rate of one WebSocket between two pings; more closes the connection.',
  socketPingMs: 'Interval of pings; a connection that has not answered by the next one is closed.',
  socketMistakesMax: 'Invalid frames before a connection is closed.',
  socketsUnboundMax: 'WebSocket connections that have not identified their worker.',
  workerNamesMax: 'Skills, models and other names of one worker, of each kind.',
  workerTasksMax: 'Tasks in one heartbeat.',
  workerRecordCharsMax: 'Registration of one worker, as JSON.',
  workersMax: 'Live workers.',
  eventSchemaCharsMax: 'A schema that a worker declares for its events.',
  eventSchemaRefsMax: 'References in such a schema.',
  eventSchemasMax: 'Compiled event schemas that are cached.',
  eventSchemasOfTypeMax: 'Different schemas of one worker for the same event type.',
  eventCheckCharsMax: 'Characters of an event schema multiplied by the characters of an event.',
  pageSizeDefault: 'Default number of jobs on one page.',
  pageSizeMax: 'Maximum number of jobs on one page.',
  pageBytesMax: 'One page of any list, as JSON; the rest is on the next page.',
  listedFieldBytesMax:
    'A field of a job in a list; a longer one is omitted (`omitted_fields`) unless `fields` names it.',
  pageReadBytesMax: 'Data read from the storage for one page of jobs; beyond it the page ends early.',
  pagePieceBytes: 'Data read from the storage in one read.',
  pagePieceLooks: 'Records that a filter examines in one read.',
  workersPageMax: 'Workers on one page.',
  pageOffsetMax: 'Jobs that an older client can skip with `offset`.',
  durationEventsMax: 'Events from which durations of jobs and states are computed; the newest count.',
  historyPageMax: 'Events of a job or a worker in one response.',
  eventPageDefault: 'Default number of events of all jobs in one response. `limit` overrides it.',
  historySpansMax: 'Hours or days that are counted in one response.',
  historySnapshotBytes:
    'Initial data and state history that the history stores with an event. `HISTORY_SNAPSHOT_BYTES` overrides it.',
  historyStepBytesMax: 'The same for all events of one step, such as the tasks of a fan-out.',
  historyWorkerBytesMax: 'Data about a worker that the history stores with an event.',
  commentCharsMax: 'Comment of a decision, or reason of a cancellation.',
  capabilityMs: 'Validity of a link to an approval that does not expire.',
  identifierCharsMax: 'Names of blueprints, states, tasks and workers.',
  expressionCharsMax: 'Condition of a handler.',
  expressionDepthMax: 'Nesting depth of a condition.',
  fileKeyBytesMax: 'Name of a file, including `jobs/<job id>/`, in UTF-8.',
  filePartBytes: 'Part of a multipart upload to S3. Each large upload keeps two parts in memory.',
  fileBuffersBytesMax: 'Total memory of all uploads to S3.',
  fileOperationsWaitingMax: 'File operations that wait for one of `S3_MAX_CONCURRENCY` slots.',
  fileWaitMs: 'Time that a file operation waits for a slot.',
  fileStallMs: 'Time without progress after which an upload or download is aborted.',
  fileAddressesMax: 'Open upload addresses of S3 for one job. Beyond it, a job gets addresses of the server.',
  fileAddressLingerMs: 'Time for which the space of an upload to S3 stays reserved after its address has expired.',
  fileJsonBytesMax: 'A file that `readJson` reads.',
  openJobsBytesMax:
    'Data that the open and quarantined jobs of one client begin with; a new job may have this much divided by their number. `MAX_OPEN_JOBS_BYTES_PER_CLIENT` overrides it.',
  allOpenJobsBytesMax:
    'Data that the open and quarantined jobs of all clients begin with; a new job may have this much divided by their number. `MAX_OPEN_JOBS_BYTES` overrides it.',
  automationsBytesMax:
    'Automations of one owner, including canceled ones, as they are stored; a new one may have this much divided by their number. `AUTOMATIONS_BYTES_MAX` overrides it.',
  automationBytesMax: 'One automation as it is stored: its definition in three forms.',
  eventsBytesMax:
    'Events of one owner that are kept; a new one may have this much divided by their number. `EVENTS_BYTES_MAX` overrides it.',
  waitingRunsBytesMax:
    'Params and events of the runs of one automation that wait for their place; a new one may have this much divided by their number.',
  recordBytesMin: 'What each record counts for beside its data.',
  jobLogLinesMax: 'Lines of `context.log` and `task.log` that are stored with a job; the newest are kept.',
  jobLogBytesMax: 'The same, in bytes.',
  jobLogMessageCharsMax: 'Message of one line; a longer one is truncated.',
  jobLogFieldsBytesMax: 'Fields of one line; larger ones are omitted.',
  jobLogPendingBytesMax:
    'Lines of all jobs of one instance that wait to be stored. Further lines are only in the server’s log.',
  taskLogLinesMax: 'Lines of `task.log` that are sent with a result; the newest are kept.',
  taskLogBytesMax: 'The same, in bytes.',
}

export function limitsPage(): string {
  const rows = limitNames().map((name) => [`\`${name}\``, LIMITS[name].toLocaleString('en-US'), LIMIT_MEANINGS[name]])
  return page('Limits', [
    'Requests beyond a limit are rejected: 413 for a body that is too large, 422 for one that is too deep or has too many\n' +
      'values. If a blueprint exceeds a limit, its handler fails or its job goes into quarantine. `Ms` means milliseconds.',
    table(['name', 'limit', 'applies to'], rows),
    'The limits are defined in `packages/protocol/src/limits.ts`, with their reasons.',
  ])
}

/** Type boundary: the keys of a constant are the names of its type. */
function limitNames(): readonly (keyof typeof LIMITS)[] {
  return Object.keys(LIMITS) as (keyof typeof LIMITS)[]
}
