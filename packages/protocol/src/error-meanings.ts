import type { ErrorCode } from './errors.ts'

export interface ErrorMeaning {
  /** What has happened. */
  readonly meaning: string
  /** What the caller, or whoever runs the server, can do about it. */
  readonly fix: string
}

/** Every refusal in words: for the API document and the reference. The message of an answer names the case at hand. */
export const ERROR_MEANINGS: Readonly<Record<ErrorCode, ErrorMeaning>> = {
  INVALID_REQUEST: {
    meaning:
      'A field or a parameter is missing or has the wrong shape. The message names it. Fields that are not known are ignored, except by the requests of quarantine and webhooks.',
    fix: 'Correct the field that the message names; the API document has the shape of every request.',
  },
  INVALID_JSON: {
    meaning: 'The body is no JSON.',
    fix: 'Send one JSON value in UTF-8, without comments and without a comma at the end of a list.',
  },
  UNAUTHENTICATED: {
    meaning: 'The token is missing or nobody’s.',
    fix: 'Send a client’s token as `X-Client-Token`, a worker’s as `X-Worker-Token`.',
  },
  FORBIDDEN: {
    meaning:
      'Ids that contradict one another, a role that may not do this, or a request from elsewhere to a server without tokens.',
    fix: 'Use the token of a client with the role that the message names, or the same worker id everywhere.',
  },
  NOT_FOUND: { meaning: 'There is no such path.', fix: 'Look the path up in the API document.' },
  JOB_NOT_FOUND: {
    meaning: 'There is no such job, or it belongs to another client.',
    fix: 'Check the id, and that the token is that of the client who started the job.',
  },
  BLUEPRINT_NOT_FOUND: {
    meaning: 'No blueprint of that name is registered.',
    fix: 'Look at `GET /api/v1/blueprints`; register the blueprint, or put its file into `BLUEPRINTS_DIR`.',
  },
  WORKER_NOT_FOUND: {
    meaning: 'The worker is not registered, or no longer.',
    fix: 'A worker registers again; a client looks at `GET /api/v1/workers`.',
  },
  METHOD_NOT_ALLOWED: { meaning: 'The path exists with another method.', fix: 'Use one that `Allow` names.' },
  REQUEST_TIMEOUT: {
    meaning: 'The head or the body of the request did not arrive in time.',
    fix: 'Send the request without pauses: the head within 10 seconds, all of it within 30.',
  },
  CONFLICT: { meaning: 'Somebody else changed it at the same time.', fix: 'Read it anew and try again.' },
  NOT_WAITING: {
    meaning: 'The job does not wait for what was sent: a decision, a retry, a discard.',
    fix: 'Read the job: it may have gone on, or somebody else was faster.',
  },
  STALE_DECISION: {
    meaning: 'The decision answers a question that the job no longer asks.',
    fix: 'Read the job’s open question with `GET /api/v1/jobs/{job_id}/approval` and decide that one.',
  },
  BODY_TOO_LARGE: {
    meaning: 'The body is larger than `BODY_LIMIT_BYTES`.',
    fix: 'Put large data into files and send their addresses.',
  },
  UNSUPPORTED_MEDIA: {
    meaning: 'The body is of a type that is not read here.',
    fix: 'Send JSON, with the content type `application/json`.',
  },
  INPUT_REFUSED: {
    meaning: 'The initial data does not fit the input schema of the blueprint.',
    fix: 'Correct what the message lists.',
  },
  LIMIT_EXCEEDED: {
    meaning: 'Over one of the [limits](limits.md).',
    fix: 'Send less at once, or put large data into files.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    meaning: 'The key, or the id, was used for another request before.',
    fix: 'Use a new key for a new request, and the same body with the same key.',
  },
  QUOTA_EXCEEDED: {
    meaning: 'The client has started as many jobs in this month as its quota allows. The refused one cost nothing.',
    fix: 'Wait for the next month (`Retry-After` says how long), or have `monthly_attempts` raised in `clients.toml`.',
  },
  TOO_MANY_REQUESTS: {
    meaning: 'More requests than the rate limit allows, or too many wrong tokens from one address.',
    fix: 'Wait as long as `Retry-After` says.',
  },
  QUEUE_FULL: {
    meaning: 'As many documents wait to be read as the queue of the documents app may hold.',
    fix: 'Try again later, or raise `engine.queue.max_size` in the configuration of the documents app.',
  },
  HEADERS_TOO_LARGE: {
    meaning: 'The request line and the headers together have more than 16 kB.',
    fix: 'Send less in headers and in the query. Data belongs in the body.',
  },
  INTERNAL: { meaning: 'A mistake of ours.', fix: 'The server’s log has the rest; please report it.' },
  OVERLOADED: {
    meaning: 'There is more work than can be done in time. Nothing of the request was done.',
    fix: 'Send it again after `Retry-After`; if it happens often, send less at once, or run more instances.',
  },
  SHUTTING_DOWN: { meaning: 'This server is about to stop.', fix: 'Try again, here or at another instance.' },
  STORAGE_REFUSED: {
    meaning: 'The storage refused the write: it is full, or takes no writes at the moment. Nothing was written.',
    fix: 'Send the request again after `Retry-After`. Free memory or disk of the storage, or see to its failover.',
  },
  STORAGE_UNAVAILABLE: {
    meaning:
      'The storage does not answer, or another process has its directory. Whether a write was done is not known.',
    fix: 'Send it again with the same idempotency key. Look at `/_public/ready`; see that the storage runs and that no second server has the directory.',
  },
  INVALID_BLUEPRINT: {
    meaning: 'A blueprint that cannot work. Stops the start, or fails the handler run; never an answer over HTTP.',
    fix: 'Change the blueprint as the message says.',
  },
  INVALID_EXPRESSION: {
    meaning: 'A condition that cannot be read. Stops the start; never an answer over HTTP.',
    fix: 'Change the condition at the place that the message names.',
  },
  INVALID_CONFIGURATION: {
    meaning: 'A setting or a file that cannot be used. Stops the start, or refuses a reload.',
    fix: 'Change the key or the file that the message names.',
  },
}
