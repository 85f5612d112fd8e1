/**
 * Every bound of the system, in one place. What is over a limit is refused, never queued without end.
 *
 * A limit that users may change has its default here and its name in the configuration reference.
 */
export const LIMITS = {
  /** Larger data belongs into files; a bigger body would also block the event loop while it is parsed. */
  bodyBytesMax: 1_048_576,
  /** `JSON.stringify` overflows the stack near 5,000 levels: deeper input would break every later read. */
  jsonDepthMax: 64,
  jsonKeysMax: 10_000,
  /** An empty list takes two bytes on the wire and a hundred in memory, and costs 2 µs on its way through the server. */
  jsonContainersMax: 20_000,
  /** Values of any kind. A number in a list costs a fifth of a microsecond in each of several steps. */
  jsonValuesMax: 100_000,
  jsonStringBytesMax: 262_144,
  /** A key of 2,048 bits has 617 digits. Arithmetic on more takes a time that grows with their square. */
  jsonNumberCharsMax: 1_000,
  /** Jobs in one batched create, tasks in one batched poll, results in one batched post. */
  batchItemsMax: 500,
  /**
   * What the tasks of one poll take in memory. A worker that asks for many large ones gets some of them, and the others with
   * its next poll.
   */
  handoutBytesMax: 8_388_608,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveMs: 65_000,
  /** Nothing of an answer was read for so long: its reader is gone, and what waits for it takes up memory. */
  answerStallMs: 20_000,
  /** Whoever reads an answer more slowly than a modem is cut off. */
  answerBytesPerSecondMin: 8_192,
  /** Answers that wait for their readers, all together. Beyond it the slowest is cut off. */
  answersBytesMax: 134_217_728,
  longPollMs: 30_000,
  longPollMsMax: 120_000,
  /** Branches of one fan-out. */
  fanOutMax: 1_000,
  /**
   * Data that all branches of one fan-out may leave in their job's record, which is written whole with every step: 4 kB
   * for each of 1,000 branches. A branch beyond it counts as failed; its data belongs into files.
   */
  branchResultsBytesMax: 4_194_304,
  /** States that a job may enter before it counts as a loop. */
  transitionsMaxDefault: 100,
  transitionsMaxCeiling: 1_000,
  /** Serialised state history of a job; beyond it the job fails and asks for files instead. */
  contextBytesMax: 262_144,
  childDepthMax: 16,
  handlerMs: 60_000,
  handlerAttemptsMax: 4,
  taskAttemptsMax: 4,
  /** A turn whose handler was begun so often and never returned, because the process ended first, waits for a person. */
  turnBegunMax: 3,
  /**
   * A turn whose handler returned so often, and whose process each time ended before that was stored, waits for a person. More
   * than of those that never return: a process that is killed often is likelier the reason than what a handler left running.
   */
  turnLostMax: 10,
  /** A task whose worker vanished is handed out again this often before it counts as failed. */
  taskDeliveriesMax: 10,
  /** Tasks of most blueprints are done in five minutes; those that are not should say so. Users may change it. */
  runTimeoutMs: 300_000,
  backoffMs: 1_000,
  backoffMsMax: 900_000,
  /** Notable moments kept inside a job's record; older ones are dropped first. */
  trailEntriesMax: 60,
  /**
   * Texts of errors become a part of the job's record, which is written with every step; a message may also stand in
   * each of its notable moments. A screenful of each says what went wrong.
   */
  handlerErrorCharsMax: 2_000,
  handlerStackCharsMax: 8_000,
  /** More than for handlers, because the output of a foreign program is often all that there is to go by. */
  taskErrorCharsMax: 4_000,
  /** The stack that a worker sends with a failure. It is kept in the job's record, for operators. */
  taskStackCharsMax: 8_000,
  /** Each event of a worker writes the job's record. Whoever sends more while one state lasts sends a stream. */
  workerEventsMax: 1_000,
  /** A sender repeats what it sent last, so that the newest ids are enough to know a repeated event by. */
  workerEventIdsMax: 100,
  eventTypeCharsMax: 100,
  /** One event for a job. It becomes a part of the job's record; larger data belongs into files. */
  eventBytesMax: 65_536,
  /** Events that came before their job waits for them, for each job; and for each topic and key of a client. */
  keptEventsMax: 100,
  /** What those of a job bring, all together: they are written with every step of it. */
  keptEventsBytesMax: 131_072,
  /** The same for one topic and key. */
  inboxBytesMax: 262_144,
  /** Ids of events that a job remembers, to know a repeated one by. */
  knownEventsMax: 200,
  /** How long an event that was sent by key is kept for jobs that wait for it later. */
  keptEventMs: 86_400_000,
  /** Jobs that one event reaches in one step; more are reached in several. */
  eventReachStep: 200,
  /** Who has not answered so many reminders will not answer the next one. */
  remindersMax: 30,
  remindMsMin: 1_000,
  /** Receivers of webhooks take 20 kB (Standard Webhooks); a longer result is left out and read by the API. */
  webhookResultCharsMax: 16_384,
  /** What a list of jobs is searched in, for each of them. */
  searchTextCharsMax: 500,
  /** How long an idempotency key is known, unless the retention says otherwise: longer than any client tries again. */
  idempotencyKeyMs: 86_400_000,
  idempotencyKeyCharsMax: 255,
  /** How far the clock of a worker that signs may be off, and how long a message of it can be replayed if nobody looked. */
  signatureWindowMs: 60_000,
  /** Skills, models and the like that one worker may name: each becomes an entry of an index. */
  workerNamesMax: 1_000,
  /** Tasks that one worker may name as its own in a heartbeat: each is looked up. */
  workerTasksMax: 10_000,
  /** The record of a worker, as JSON. It is kept in memory, and written with every heartbeat that changes it. */
  workerRecordCharsMax: 131_072,
  /** Workers that may be alive at the same time. Whoever knows the global token may register under any free id. */
  workersMax: 50_000,
  /** Largest frame of a worker's socket: progress and events, never data. */
  socketFrameBytesMax: 262_144,
  /** Frames of one socket in a second. Progress is worth telling a few times a second, for as many tasks as run at once. */
  socketFramesPerSecond: 50,
  /** What may wait for a worker that does not read; then the socket is closed. Commands are 200 bytes each. */
  socketBufferBytesMax: 1_048_576,
  /** On average between two pings. Progress and events are short; 50 of them in a second are some 50 kB. */
  socketBytesPerSecond: 4_194_304,
  socketPingMs: 20_000,
  /** Frames that are no messages, before the socket is closed. */
  socketMistakesMax: 5,
  /** Sockets that have not said whose they are. Each may be anybody's who knows the global token. */
  socketsUnboundMax: 1_000,
  /**
   * What a worker declares about its events is compiled, in a time that grows with the square of its length: a tenth of a
   * second for this. Larger contracts belong into the worker.
   */
  eventSchemaCharsMax: 8_192,
  eventSchemaRefsMax: 20,
  eventSchemasMax: 256,
  /** Different contracts of one worker for the same event, as several of its skills may have them. */
  eventSchemasOfTypeMax: 8,
  /** Characters of a contract times characters of an event that is held against it: a tenth of a second at the worst. */
  eventCheckCharsMax: 67_108_864,
  pageSizeDefault: 50,
  pageSizeMax: 100,
  /**
   * One page of a list, as JSON: what is longer goes on on the next page. A client reads it in a second over 40 Mbit/s, and
   * writing it holds nobody up for longer than some 20 ms.
   */
  pageBytesMax: 4_194_304,
  /** A field of a job that is longer is left out of lists, unless `fields` names it: 100 jobs of a megabyte are 100 MB. */
  listedFieldBytesMax: 16_384,
  /** What is read from the storage for one page, piece by piece, also where most of it is left out of the answer. */
  pageReadBytesMax: 33_554_432,
  /** Read at once, and other work runs before the next piece. */
  pagePieceBytes: 2_097_152,
  /** Records that a filter leaves out, looked through at once: some ten milliseconds. */
  pagePieceLooks: 2_000,
  /** Workers of one page. One in a thousand installations has more. */
  workersPageMax: 1_000,
  /** Older clients count from the beginning, which reads all that is left out. */
  pageOffsetMax: 1_000,
  /** Moments of one job in one answer. */
  historyPageMax: 1_000,
  /** Events of any jobs in one answer, where nothing else is asked for. */
  eventPageDefault: 100,
  /** Hours or days that are counted in one answer: a month of hours. */
  historySpansMax: 745,
  /** Of a job's initial data and dictionary, what each of its events keeps; usual jobs have less. */
  historySnapshotBytes: 8_192,
  /** The same over all events of one step: 128 branches of a fan-out with the whole of it. */
  historyStepBytesMax: 1_048_576,
  /** What the history keeps of a worker with an event; a larger one is left out. */
  historyWorkerBytesMax: 4_096,
  /** What a person may add to a decision; it becomes a part of the job's record. */
  commentCharsMax: 2_000,
  /** How long a link to an open question is good, where the question has no end of its own. */
  capabilityMs: 604_800_000,
  identifierCharsMax: 200,
  expressionCharsMax: 2_000,
  expressionDepthMax: 64,
} as const
