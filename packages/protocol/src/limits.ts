/**
 * Every limit of the system, in one place. Requests over a limit are refused, never queued without bound.
 *
 * A limit that users may change has its default here and its name in the configuration reference.
 */
export const LIMITS = {
  /** Larger data belongs in files; a bigger body would also block the event loop while it is parsed. */
  bodyBytesMax: 1_048_576,
  /** `JSON.stringify` overflows the stack near 5,000 levels: deeper input would break every later read. */
  jsonDepthMax: 64,
  jsonKeysMax: 10_000,
  /** An empty list takes two bytes on the wire and a hundred in memory, and costs 2 µs on its way through the server. */
  jsonContainersMax: 20_000,
  /** Values of any kind. A number in a list costs a fifth of a microsecond in each of several steps. */
  jsonValuesMax: 100_000,
  jsonStringBytesMax: 262_144,
  /**
   * A key of 2,048 bits has 617 digits. The time for arithmetic on longer numbers grows with the square of their
   * length.
   */
  jsonNumberCharsMax: 1_000,
  /** Jobs in one batched create, tasks in one batched poll, results in one batched post. */
  batchItemsMax: 500,
  /**
   * The size in memory of the tasks of one poll. A worker that requests many large tasks gets some of them, and the
   * others with its next poll.
   */
  handoutBytesMax: 8_388_608,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveMs: 65_000,
  /** If no part of a response was read for this long, its reader is gone, and the buffered data takes up memory. */
  answerStallMs: 20_000,
  /** A client that reads a response more slowly than a modem is disconnected. */
  answerBytesPerSecondMin: 8_192,
  /** Total size of responses that wait for their readers. Beyond it the slowest reader is disconnected. */
  answersBytesMax: 134_217_728,
  /**
   * What requests that wait take of the memory of one process, a quarter of its heap at most: 87,000 polls of workers with 6 kB each.
   * One connection can bring any number of them, and a token may be shared by many workers.
   */
  waitsBytesMax: 536_870_912,
  longPollMs: 30_000,
  longPollMsMax: 120_000,
  /** Branches of one fan-out. */
  fanOutMax: 1_000,
  /**
   * Data that all branches of one fan-out may leave in their job's record, which is written as a whole with every step:
   * 4 kB for each of 1,000 branches. A branch beyond it counts as failed; its data belongs in files.
   */
  branchResultsBytesMax: 4_194_304,
  /** States that a job may enter before it counts as a loop. */
  transitionsMaxDefault: 100,
  transitionsMaxCeiling: 1_000,
  /** Serialized state history of a job; beyond it the job fails, and its data belongs in files. */
  contextBytesMax: 262_144,
  /** What an ended job keeps of the results of its calls, beside its state history. */
  endedResultsBytesMax: 16_384,
  /**
   * The same where large values of jobs are kept in the store of files: what stays in the record has `contextBytesMax`. A job is
   * still read as a whole, and each step of it takes this much memory.
   */
  offloadedHistoryBytesMax: 4_194_304,
  /** Smaller values always stay in the record: a file for each would cost more than it saves. */
  offloadedValueBytesMin: 16_384,
  childDepthMax: 16,
  handlerMs: 60_000,
  handlerAttemptsMax: 4,
  taskAttemptsMax: 4,
  /**
   * A turn whose handler was started this often and never returned, because the process ended first, waits for a
   * person.
   */
  turnBegunMax: 3,
  /**
   * A turn whose handler returned this often, and whose process each time ended before the result was stored, waits for
   * a person. The limit is higher than for handlers that never return: frequent kills of the process are a likelier
   * cause than code that a handler left running.
   */
  turnLostMax: 10,
  /** A task whose worker vanished is delivered again this often before it counts as failed. */
  taskDeliveriesMax: 10,
  /** Tasks of most blueprints finish within five minutes; others should set their own limit. Users may change it. */
  runTimeoutMs: 300_000,
  backoffMs: 1_000,
  backoffMsMax: 900_000,
  /** Notable events kept inside a job's record; the oldest are dropped first. */
  trailEntriesMax: 60,
  /**
   * Error texts become part of the job's record, which is written with every step; a message may also be repeated in
   * each of its notable events. A screenful of each is enough to see what went wrong.
   */
  handlerErrorCharsMax: 2_000,
  handlerStackCharsMax: 8_000,
  /** More than for handlers, because the output of an external program is often the only information. */
  taskErrorCharsMax: 4_000,
  /** The stack that a worker sends with a failure. It is kept in the job's record, for operators. */
  taskStackCharsMax: 8_000,
  /**
   * Each event of a worker writes the job's record. A worker that sends more during one state should stream the data
   * elsewhere.
   */
  workerEventsMax: 1_000,
  /** A sender only retries what it sent last, so the newest ids are enough to recognize a repeated event. */
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
  /** Streams of changes that are open in one process; each is a connection and up to two messages of its own. */
  changeStreamsMax: 1_000,
  /** The same for one client, so that one does not take them all. */
  changeStreamsPerClientMax: 250,
  /** Changes that a process keeps for streams that come back; a stream that needs older ones reads everything again. */
  changesKeptMax: 4_096,
  changesBytesMax: 2_097_152,
  /** One message of a stream. Beyond it jobs are not named: a reader with so many of them reads its lists again. */
  changeMessageBytesMax: 32_768,
  /** A person who has not answered this many reminders will not answer the next one. */
  remindersMax: 30,
  /** Saved views of one caller, and their bytes together. */
  viewsMax: 50,
  viewsBytesMax: 32_768,
  viewNameCharsMax: 100,
  viewFiltersMax: 20,
  viewValueCharsMax: 500,
  remindMsMin: 1_000,
  /**
   * Receivers of webhooks accept 20 kB (Standard Webhooks); a longer result is left out and can be read through the
   * API.
   */
  webhookResultCharsMax: 16_384,
  /**
   * Endpoints of one client that it declares, or whose secrets it replaces: those stay until they are deleted with their client.
   * Others come with messages and are forgotten by themselves.
   */
  endpointsMax: 10_000,
  /** The search text of each job in a list. */
  searchTextCharsMax: 500,
  /** How long an idempotency key is kept, unless the retention says otherwise: longer than any client retries. */
  idempotencyKeyMs: 86_400_000,
  idempotencyKeyCharsMax: 255,
  /**
   * How far the clock of a signing worker may be off, and how long its messages could be replayed without further
   * checks.
   */
  signatureWindowMs: 60_000,
  /** Skills, models and similar entries that one worker may declare: each becomes an index entry. */
  workerNamesMax: 1_000,
  /** Tasks that one worker may report as its own in a heartbeat: each is looked up. */
  workerTasksMax: 10_000,
  /** The record of a worker, as JSON. It is kept in memory, and written with every heartbeat that changes it. */
  workerRecordCharsMax: 131_072,
  /**
   * Workers that may be alive at the same time. Any client that knows the global token may register under any free id.
   */
  workersMax: 50_000,
  /** Largest frame of a worker's socket: progress and events, never data. */
  socketFrameBytesMax: 262_144,
  /** Frames per second of one socket. A few progress reports per second are useful for each task that runs at once. */
  socketFramesPerSecond: 50,
  /**
   * Data that may wait for a worker that does not read; beyond it the socket is closed. Commands are 200 bytes each.
   */
  socketBufferBytesMax: 1_048_576,
  /** Average between two pings. Progress and events are short; 50 of them per second are some 50 kB. */
  socketBytesPerSecond: 4_194_304,
  socketPingMs: 20_000,
  /** Frames that are not valid messages, before the socket is closed. */
  socketMistakesMax: 5,
  /** Sockets that have not identified themselves. Any client that knows the global token can open one. */
  socketsUnboundMax: 1_000,
  /**
   * A worker's event contracts are compiled, in a time that grows with the square of their length: a tenth of a second
   * for this length. Larger contracts belong in the worker.
   */
  eventSchemaCharsMax: 8_192,
  eventSchemaRefsMax: 20,
  eventSchemasMax: 256,
  /** Different contracts of one worker for the same event, which several of its skills may define. */
  eventSchemasOfTypeMax: 8,
  /**
   * Characters of a contract times characters of an event that is validated against it: a tenth of a second in the
   * worst case.
   */
  eventCheckCharsMax: 67_108_864,
  pageSizeDefault: 50,
  pageSizeMax: 100,
  /**
   * One page of a list, as JSON; longer lists continue on the next page. A client reads it in a second over 40 Mbit/s,
   * and writing it blocks the event loop for at most some 20 ms.
   */
  pageBytesMax: 4_194_304,
  /** A longer field of a job is left out of lists, unless `fields` names it: 100 jobs of a megabyte are 100 MB. */
  listedFieldBytesMax: 16_384,
  /** The amount read from the storage for one page, in portions, even where most of it is left out of the response. */
  pageReadBytesMax: 33_554_432,
  /** The size of one portion; other work runs before the next one. */
  pagePieceBytes: 2_097_152,
  /** Records that a filter excludes, scanned at once: some ten milliseconds. */
  pagePieceLooks: 2_000,
  /** Workers per page. One in a thousand installations has more. */
  workersPageMax: 1_000,
  /** Older clients use an offset, which reads all skipped records. */
  pageOffsetMax: 1_000,
  /** Events from which durations are computed: some hundred milliseconds of reading, in pieces. */
  durationEventsMax: 20_000,
  /** Events of one job in one response. */
  historyPageMax: 1_000,
  /** Events of any jobs in one response, by default. */
  eventPageDefault: 100,
  /** Hours or days that are counted in one response: a month of hours. */
  historySpansMax: 745,
  /** The part of a job's initial data and dictionary that each of its events keeps; usual jobs have less. */
  historySnapshotBytes: 8_192,
  /** The same over all events of one step: 128 branches of a fan-out with all of it. */
  historyStepBytesMax: 1_048_576,
  /** The snapshot of a worker that the history keeps with an event; a larger one is left out. */
  historyWorkerBytesMax: 4_096,
  /** The comment that a person may add to a decision, or the reason to cancel; it becomes part of the job's record. */
  commentCharsMax: 2_000,
  /** How long a link to an open approval is valid, if the approval has no timeout of its own. */
  capabilityMs: 604_800_000,
  identifierCharsMax: 200,
  expressionCharsMax: 2_000,
  expressionDepthMax: 64,
  /** The longest key that S3 takes: `jobs/<job id>/` and the file's name, in UTF-8. */
  fileKeyBytesMax: 1_024,
  /** S3 takes 10,000 parts, and this many bytes times 10,000 are 80 GB. Two of these are in memory for each large upload. */
  filePartBytes: 8_388_608,
  /** What all uploads to S3 together hold in memory. Further ones wait. */
  fileBuffersBytesMax: 134_217_728,
  /** Operations on files that wait for their turn. Beyond it they are refused. */
  fileOperationsWaitingMax: 1_000,
  fileWaitMs: 30_000,
  /** Nothing came of a file for so long: whoever sends or reads it is gone. */
  fileStallMs: 30_000,
  /** Addresses of S3 for uploads that one job has at a time: they are one record. Beyond it, addresses are those of the server. */
  fileAddressesMax: 100,
  /** Room is kept for an upload to S3 so long after its address has ended: one that has begun by then may go on. */
  fileAddressLingerMs: 3_600_000,
  /** One file that is read as JSON, into memory. */
  fileJsonBytesMax: 16_777_216,
  /**
   * Jobs of one client that are open or in quarantine. No storage tells how many bytes they have, but all tell how many they
   * are: so the share of a new one is this much divided by their number (`fairShare`). Whoever makes each as large as it may be
   * gets some ten times as much, and no more.
   */
  openJobsBytesMax: 17_179_869_184,
  /** The same over all clients: five million jobs, which `MAX_OPEN_JOBS` allows, have 13 KB each. */
  allOpenJobsBytesMax: 68_719_476_736,
  /** The same for the automations of one owner, with those that are canceled: 100,000 of them may have 40 kB each. */
  automationsBytesMax: 4_294_967_296,
  /** One automation as it is stored, in three forms. Lists read a page of them at once. */
  automationBytesMax: 1_048_576,
  /** The same for the events of one owner, which are kept for a week. */
  eventsBytesMax: 17_179_869_184,
  /** The same for what the runs of one automation begin with that wait for their place: a thousand events of 64 kB. */
  waitingRunsBytesMax: 67_108_864,
  /**
   * The same for all automations of one owner together, as they are counted: a hundred thousand small ones, or a hundred of
   * the largest. A storage in memory or in a file holds all of them, and a server with a heap of 512 MB has room for it.
   */
  waitingRunsOfOwnerBytesMax: 134_217_728,
  /** What a record takes beside its data: its names, times and entries of indexes. So that empty ones count too. */
  recordBytesMin: 1_024,
  /** The newest lines of a job's log are kept with it. */
  jobLogLinesMax: 200,
  jobLogBytesMax: 65_536,
  jobLogMessageCharsMax: 1_000,
  jobLogFieldsBytesMax: 1_024,
  /** What all jobs of one instance have written and that is not stored yet. Further lines are only in the server's own log. */
  jobLogPendingBytesMax: 8_388_608,
  /** Lines of one task that travel with its result. */
  taskLogLinesMax: 50,
  taskLogBytesMax: 8_192,
} as const
