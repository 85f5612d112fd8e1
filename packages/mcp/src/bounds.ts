/** What one call may cost. Every list and every answer has a bound in bytes too. */
export const BOUNDS = {
  /** Rows of one answer. Assistants read every row, so pages are short. */
  rowsMax: 20,
  /** The JSON of one answer. A longer one leaves its largest fields out and names them. */
  answerBytesMax: 65_536,
  /** The text of one document or job that `fetch` gives. */
  fetchBytesMax: 262_144,
  /** The longest wait of one call. Assistants give up on a call after a minute. */
  waitSecondsMax: 45,
  /** How often a call that waits says that it is alive. */
  progressSeconds: 5,
  /** The least time between two messages about changes. */
  newsMs: 20,
  /** A blueprint that ends within this time is answered at once, also to clients that know tasks. */
  graceMs: 250,
  /** How often a client should ask for a task. */
  pollIntervalMs: 1_000,
  /** The descriptions of all tools together. About 4 bytes are a token: 7,500 tokens of the 8,000 that we promise. */
  toolsBytesMax: 30_000,
  /** The schema of one blueprint's input in the list of tools; a longer one is replaced by an open object. */
  schemaBytesMax: 4_000,
  /** Questions of one job and its children that one answer shows. */
  questionsMax: 10,
  /** What a person fills into the forms of one call. It travels through the client between two rounds. */
  formBytesMax: 8_192,
  /** How long a call of an older client stays open for a person. The answer counts later too. */
  askSecondsMax: 300,
} as const
