/** One metric: what it is called, what it says, and by which labels it is told apart. */
export interface MetricSpec {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** Upper bounds of the buckets of a histogram. */
  readonly bounds?: readonly number[]
  /** Every instance shows the same figure of the whole cluster: take the maximum, not the sum. */
  readonly isShared?: boolean
}

const BLUEPRINT = ['blueprint'] as const
/** From a tenth of a second to a day. */
const JOB_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400] as const
const TASK_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200] as const
const LAG_SECONDS = [0.05, 0.1, 0.5, 1, 2, 5, 15, 60, 300, 3_600] as const
const WRITE_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5] as const
const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30] as const

/**
 * All metrics of a server. The names that begin with `orchestrator_` are those of the specification, and dashboards made
 * for it find them; the others are ours. docs/reference/metrics.md is made from this table.
 */
export const METRICS = {
  orchestrator_jobs_total: { type: 'counter', help: 'Jobs that were created.', labels: BLUEPRINT },
  orchestrator_jobs_failed_total: {
    type: 'counter',
    help: 'Jobs that failed, ended with an error, or were put into quarantine.',
    labels: BLUEPRINT,
  },
  orchestrator_job_duration_seconds: {
    type: 'histogram',
    help: 'Time from the creation of a job to its end.',
    labels: BLUEPRINT,
    bounds: JOB_SECONDS,
  },
  orchestrator_task_queue_length: {
    type: 'gauge',
    help: 'Tasks that are due and that no worker has taken. Redis and PostgreSQL count up to ten for each kind of work.',
    labels: [],
    isShared: true,
  },
  orchestrator_active_workers: { type: 'gauge', help: 'Workers that are connected.', labels: [], isShared: true },
  orchestrator_ratelimit_blocked_total: {
    type: 'counter',
    help: 'Requests that were refused because of a rate limit or a quota.',
    labels: ['path'],
  },
  orchestrator_jobs_timeouts_total: {
    type: 'counter',
    help: 'Time limits that were exceeded: `dispatch` (no worker took the task), `execution` (the task or the job took too long).',
    labels: ['blueprint', 'type'],
  },
  orchestrator_tasks_ignored_total: {
    type: 'counter',
    help: 'Results of workers that no longer counted.',
    labels: ['blueprint', 'reason'],
  },
  orchestrator_tasks_hot_dispatched_total: {
    type: 'counter',
    help: 'Tasks that were handed to a worker with what they need loaded: their `skill`, or the `model` that they name.',
    labels: ['blueprint', 'kind'],
  },
  orchestrator_loop_lag_seconds: {
    type: 'gauge',
    help: 'Delay of the event loop: 99th percentile of the last seconds.',
    labels: [],
  },
  orchestrator_s3_operations_total: {
    type: 'counter',
    help: 'Operations on the store of files, in a directory or in S3.',
    labels: ['operation', 'status'],
  },
  orchestrator_s3_operation_duration_seconds: {
    type: 'histogram',
    help: 'Duration of operations on the store of files. A download counts until its first byte.',
    labels: ['operation'],
    bounds: CALL_SECONDS,
  },
  orchestrator_scheduler_jobs_triggered_total: {
    type: 'counter',
    help: 'Jobs that were created by a schedule.',
    labels: BLUEPRINT,
  },
  orchestrator_security_auth_failures_total: {
    type: 'counter',
    help: 'Requests without a valid token, signature or link.',
    labels: [],
  },
  orchestrator_security_replay_detected_total: {
    type: 'counter',
    help: 'Signed messages of workers that came a second time.',
    labels: [],
  },
  orchestrator_security_identity_mismatch_total: {
    type: 'counter',
    help: 'Requests of workers under an id that is not theirs.',
    labels: [],
  },
  impresario_jobs_ended_total: {
    type: 'counter',
    help: 'Jobs that ended, by outcome: `finished`, `failed`, `error`, `cancelled`.',
    labels: ['blueprint', 'outcome'],
  },
  impresario_jobs_quarantined_total: {
    type: 'counter',
    help: 'Jobs that were put into quarantine.',
    labels: BLUEPRINT,
  },
  impresario_tasks_ended_total: {
    type: 'counter',
    help: 'Tries of tasks that ended, by outcome: `finished`, `failed`, `expired` (no worker took it), `abandoned` (its workers fell silent).',
    labels: ['blueprint', 'outcome'],
  },
  impresario_task_duration_seconds: {
    type: 'histogram',
    help: 'Time from sending a try of a task to its result.',
    labels: BLUEPRINT,
    bounds: TASK_SECONDS,
  },
  impresario_jobs: {
    type: 'gauge',
    help: 'Jobs in the storage, by status.',
    labels: ['status'],
    isShared: true,
  },
  impresario_workers: { type: 'gauge', help: 'Workers, by status.', labels: ['status'], isShared: true },
  impresario_queue_waiting: {
    type: 'gauge',
    help: 'Items that are due and not claimed, by queue. Redis and PostgreSQL count up to ten for each lane.',
    labels: ['queue'],
    isShared: true,
  },
  impresario_queue_oldest_seconds: {
    type: 'gauge',
    help: 'How long the oldest item has been due that comes next in its lane, by queue; 0 while nothing waits. For `firings` it is how late automations are.',
    labels: ['queue'],
    isShared: true,
  },
  impresario_tasks_waiting: {
    type: 'gauge',
    help: 'Tasks that are due and that no worker has taken, by kind of work; `placed`: those that lie ready for one worker, `other`: beyond the 50 longest. Redis and PostgreSQL count up to ten for each lane.',
    labels: ['task_type'],
    isShared: true,
  },
  impresario_leases_held: {
    type: 'gauge',
    help: 'Tasks in the hands of workers, as far as this instance has handed them out. Take the sum of all instances.',
    labels: [],
  },
  impresario_scheduler_lag_seconds: {
    type: 'histogram',
    help: 'Time from the moment at which a schedule had to fire to the creation of its job. What is caught up after a pause counts with its whole delay.',
    labels: [],
    bounds: LAG_SECONDS,
  },
  impresario_firings_skipped_total: {
    type: 'counter',
    help: 'Occurrences of automations that did not run, by reason, such as `missed`, `excluded` (by a calendar), `overlap`, `budget`, `paused`. The audit log names each.',
    labels: ['reason'],
  },
  impresario_storage_write_seconds: {
    type: 'histogram',
    help: 'Duration of writes: `commit` (until others see it), `flush` (waiting until it is durable).',
    labels: ['operation'],
    bounds: WRITE_SECONDS,
  },
  impresario_change_streams: { type: 'gauge', help: 'Open streams of changes, of browsers and clients.', labels: [] },
  impresario_storage_up: { type: 'gauge', help: '1 if the last read from the storage succeeded.', labels: [] },
  impresario_storage_read_seconds: { type: 'gauge', help: 'Duration of the last probe of the storage.', labels: [] },
  impresario_disk_free_bytes: { type: 'gauge', help: 'Free space of the disk with the data.', labels: [] },
  impresario_disk_size_bytes: { type: 'gauge', help: 'Size of the disk with the data.', labels: [] },
  impresario_certificate_expires_timestamp_seconds: {
    type: 'gauge',
    help: 'When the TLS certificate of the server expires.',
    labels: [],
  },
  impresario_history_waiting: { type: 'gauge', help: 'Events that wait to be written to the history.', labels: [] },
  impresario_history_dropped_total: { type: 'counter', help: 'Events that the history lost.', labels: [] },
  impresario_http_requests_total: {
    type: 'counter',
    help: 'Answered requests, by route and status.',
    labels: ['method', 'route', 'status'],
  },
  impresario_http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time to answer a request. Long polls count with the time that they wait.',
    labels: ['route'],
    bounds: CALL_SECONDS,
  },
  impresario_values_offloaded_total: {
    type: 'counter',
    help: 'Large values of jobs that were written to the store of files: `ok`, or `error` (the value stayed in the record).',
    labels: ['status'],
  },
  impresario_spans_exported_total: { type: 'counter', help: 'Spans that the collector took.', labels: [] },
  impresario_spans_dropped_total: {
    type: 'counter',
    help: 'Spans that were lost: `queue_full`, `export_failed` (the collector did not take them), `stopped`.',
    labels: ['reason'],
  },
  impresario_traces_skipped_total: {
    type: 'counter',
    help: 'Jobs that run without a trace because more began in a second than `TRACES_PER_SECOND`.',
    labels: [],
  },
  impresario_log_lines_exported_total: {
    type: 'counter',
    help: 'Lines of the log that the collector took.',
    labels: [],
  },
  impresario_log_lines_dropped_total: {
    type: 'counter',
    help: 'Lines of the log that did not reach the collector: `queue_full`, `export_failed`, `stopped`. They are in the log itself.',
    labels: ['reason'],
  },
  impresario_telemetry_exports_total: {
    type: 'counter',
    help: 'Requests to the collector, by signal (`traces`, `metrics`, `logs`) and status (`ok`, `error`).',
    labels: ['signal', 'status'],
  },
  impresario_build_info: { type: 'gauge', help: 'Always 1; the label names the version.', labels: ['version'] },
  process_resident_memory_bytes: { type: 'gauge', help: 'Memory of the process.', labels: [] },
  process_cpu_seconds_total: { type: 'counter', help: 'Processor time of the process.', labels: [] },
  process_start_time_seconds: { type: 'gauge', help: 'When the process started.', labels: [] },
  nodejs_heap_size_used_bytes: { type: 'gauge', help: 'Used heap of the process.', labels: [] },
} as const satisfies Readonly<Record<string, MetricSpec>>

export type MetricName = keyof typeof METRICS
