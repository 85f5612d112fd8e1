import type { ErrorCode } from './errors.ts'

export interface ErrorMeaning {
  /** What has happened. */
  readonly meaning: string
  /** What the caller or the operator can do about it. */
  readonly fix: string
}

/**
 * A description of every error, for the API document and the reference. The message of a response describes the
 * specific case.
 */
export const ERROR_MEANINGS: Readonly<Record<ErrorCode, ErrorMeaning>> = {
  INVALID_REQUEST: {
    meaning:
      'A field or parameter is missing or has the wrong type. The message names it. Unknown fields are ignored, except in requests about quarantine and webhooks.',
    fix: 'Correct the field that the message names. The API document describes every request.',
  },
  INVALID_JSON: {
    meaning: 'The body is not valid JSON.',
    fix: 'Send one JSON value in UTF-8, without comments or trailing commas.',
  },
  UNAUTHENTICATED: {
    meaning: 'The token is missing or unknown.',
    fix: 'Send a client’s token as `X-Client-Token`, a worker’s as `X-Worker-Token`.',
  },
  FORBIDDEN: {
    meaning:
      'The role of the token does not allow this, the worker ids in the request differ, or the request came from another machine to a server without tokens.',
    fix: 'Use a token with the role that the message names, or send the same worker id everywhere.',
  },
  NOT_FOUND: { meaning: 'There is no such path.', fix: 'Check the path in the API document.' },
  JOB_NOT_FOUND: {
    meaning: 'There is no such job, or it belongs to another client.',
    fix: 'Check the id. Use the token of the client that started the job.',
  },
  BLUEPRINT_NOT_FOUND: {
    meaning: 'No blueprint with that name is registered.',
    fix: '`GET /api/v1/blueprints` lists the blueprints. Register yours, or put its file into `BLUEPRINTS_DIR`.',
  },
  WORKER_NOT_FOUND: {
    meaning: 'The worker is not registered, or its record has expired.',
    fix: 'A worker must register again. For clients, `GET /api/v1/workers` lists the workers.',
  },
  METHOD_NOT_ALLOWED: {
    meaning: 'The path does not support this method.',
    fix: 'Use a method from the `Allow` header.',
  },
  FILE_NOT_FOUND: {
    meaning: 'The job has no file of that name.',
    fix: 'Look at `GET /api/v1/jobs/{job_id}/files` for the names of its files.',
  },
  REQUEST_TIMEOUT: {
    meaning: 'The headers or the body of the request did not arrive in time.',
    fix: 'Send the headers within 10 seconds and the whole request within 30 seconds.',
  },
  CONFLICT: { meaning: 'Another request changed it at the same time.', fix: 'Read it again and retry.' },
  NOT_WAITING: {
    meaning: 'The job is not waiting for this decision, retry or discard.',
    fix: 'Read the job. Its state has changed, or another request came first.',
  },
  STATE_MISSING: {
    meaning: 'The blueprint does not have the state that a retry of the job leads to.',
    fix: 'Add the state to the blueprint, or load a new version with a `migrate` function and without the old version.',
  },
  STALE_DECISION: {
    meaning: 'The decision is for a question that is no longer open.',
    fix: 'Read the open question with `GET /api/v1/jobs/{job_id}/approval` and answer it.',
  },
  STALE_REVISION: {
    meaning: 'The automation was changed after the revision that the request names. Nothing was changed.',
    fix: 'Read it again, make the change in what it is now, and send it with the new `revision`.',
  },
  BODY_TOO_LARGE: {
    meaning: 'The body is larger than `BODY_LIMIT_BYTES`.',
    fix: 'Store large data in files and send their URLs.',
  },
  FILE_TOO_LARGE: {
    meaning: 'The file is larger than one file may be.',
    fix: 'Send it in several files, or have `FILE_BYTES_MAX` raised.',
  },
  UNSUPPORTED_MEDIA: {
    meaning: 'The content type of the body is not supported.',
    fix: 'Send JSON, with the content type `application/json`.',
  },
  RANGE_NOT_SATISFIABLE: {
    meaning: 'The range begins behind the end of the file.',
    fix: 'Ask for a range within the size that `Content-Range` names. A file that is read to its end is complete.',
  },
  INPUT_REFUSED: {
    meaning: 'The initial data does not match the input schema of the blueprint.',
    fix: 'Correct the fields that the message lists.',
  },
  LIMIT_EXCEEDED: {
    meaning: 'The request exceeds one of the [limits](limits.md).',
    fix: 'Send less data at a time, or store large data in files.',
  },
  FILE_MISMATCH: {
    meaning: 'What arrived is not the file that was announced: its length or its checksum differs. Nothing was kept.',
    fix: 'Send the file again; if it happens again, compute the length and the checksum anew.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    meaning: 'The key or id was already used for a different request.',
    fix: 'Use a new key for each new request. Repeat a request with the same key and the same body.',
  },
  QUOTA_EXCEEDED: {
    meaning: 'The client has used up its monthly quota of jobs. The refused request does not count.',
    fix: 'Wait for the next month (see `Retry-After`), or ask an operator to raise `monthly_attempts` in `clients.toml`.',
  },
  TOO_MANY_REQUESTS: {
    meaning: 'The rate limit is exceeded, or too many wrong tokens came from one address.',
    fix: 'Wait for the time in `Retry-After`.',
  },
  QUEUE_FULL: {
    meaning: 'As many documents wait to be read as the queue of the documents app may hold.',
    fix: 'Try again later, or raise `engine.queue.max_size` in the configuration of the documents app.',
  },
  HEADERS_TOO_LARGE: {
    meaning: 'The request line and the headers exceed 16 kB.',
    fix: 'Send data in the body, not in headers or the query.',
  },
  INTERNAL: { meaning: 'An internal error.', fix: 'See the server log for details, and report the error.' },
  OVERLOADED: {
    meaning: 'The server is overloaded. It did not process the request.',
    fix: 'Retry after `Retry-After`. If this happens often, send less at a time or run more instances.',
  },
  SHUTTING_DOWN: { meaning: 'The server is shutting down.', fix: 'Retry, on this or another instance.' },
  STORAGE_REFUSED: {
    meaning: 'The storage refused the write because it is full or read-only. Nothing was written.',
    fix: 'Retry after `Retry-After`. Free memory or disk space, or check the failover of the storage.',
  },
  STORAGE_UNAVAILABLE: {
    meaning:
      'The storage does not respond, or another process uses its directory. The write may or may not have happened.',
    fix: 'Retry with the same idempotency key. Check `/_public/ready`, that the storage is running, and that no second server uses the directory.',
  },
  FILES_UNAVAILABLE: {
    meaning: 'The store of files does not answer, or refuses this server. Jobs go on without it.',
    fix: 'Send it again later. Check `S3_ENDPOINT_URL`, the keys and the bucket, or the disk under `FILES_DIR`; the server’s log has the reason.',
  },
  INVALID_BLUEPRINT: {
    meaning: 'The blueprint is invalid. This stops the start or fails the handler run. It is never returned over HTTP.',
    fix: 'Correct the blueprint as the message says.',
  },
  INVALID_EXPRESSION: {
    meaning: 'A condition cannot be parsed. This stops the start. It is never returned over HTTP.',
    fix: 'Correct the condition at the position that the message names.',
  },
  INVALID_CONFIGURATION: {
    meaning: 'A setting or configuration file is invalid. This stops the start or refuses a reload.',
    fix: 'Correct the key or the file that the message names.',
  },
}
