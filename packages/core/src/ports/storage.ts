import type { Json, JsonObject, LogLineBody, Soon, Usage } from '@impresario/protocol'
import type { Inbox, Listener } from '../job/inbox.ts'
import type { Job } from '../job/job.ts'
import type { WorkerRecord } from '../worker/worker.ts'
import type { Standing } from '../worker/standing.ts'

/** What can be stored by id. Each kind has one shape and one owner. */
export interface Records {
  readonly job: Job
  readonly worker: WorkerRecord
  /** An idempotency key that a client used, and the job that it stands for. */
  readonly key: { readonly jobId: string; readonly fingerprint: string; readonly createdAt: number }
  /** What became of a worker's tasks lately; by worker id. Its reputation is computed from it. */
  readonly standing: Standing
  /**
   * Jobs that a client has started in a month; by client id. Also what automations, agents and runs have used, how many
   * files a client has, with how many bytes, and for which files of a job room is kept.
   */
  readonly quota: {
    readonly period: string
    readonly used: number
    readonly usage?: Usage
    readonly bytes?: number
    readonly kept?: readonly KeptRoom[]
  }
  /** Events that a client sent by key, for jobs that wait for them now or later; by client, topic and key. */
  readonly inbox: Inbox
  /** A job that waits for an event by key; by its inbox, and then the job. */
  readonly listener: Listener
  /** When a schedule fired last, on the calendar of its time zone; by its name. */
  readonly schedule: ScheduleRecord
  /** One webhook message and what became of it; by its message id. */
  readonly delivery: JsonObject
  /** How a webhook endpoint has fared; by client and address. */
  readonly endpoint: JsonObject
  /** A short-lived token of a worker; by the token's SHA-256 in hex. */
  readonly token: {
    /** Absent: the token stands for a credential that several workers share, and its bearer did not say which one it is. */
    readonly workerId?: string
    readonly use: 'access' | 'refresh'
    /** The bearer knows no refresh tokens: a valid access token of its gives the next one. */
    readonly isSelfRenewing?: boolean
    /** All tokens that came from one sign-in: revoked together when a refresh token is used twice. */
    readonly family: string
    /** Names what the worker signed in with. Its tokens stop working when that does. */
    readonly credential: string
    readonly expiresAt: number
    /** When a refresh token was used. It is kept, so that a second use is noticed. */
    readonly usedAt?: number
  }
  /** A signed message that was taken once and must not be taken again; by signer and signature. */
  readonly nonce: { readonly at: number }
  /** The state of a rate limit for all instances together: when all requests so far are paid off; by the caller's key. */
  readonly limit: { readonly paidOffAt: number }
  /** What a worker got that several instances hand tasks to, as it knows them; by worker id. Some may have ended since. */
  readonly hands: { readonly held: readonly string[] }
  /** A standing order and how it stands; by its id. */
  readonly automation: JsonObject
  /** One event trigger of an automation, found by the topic that it listens to. */
  readonly subscription: JsonObject
  /** Something that was published; by its id. */
  readonly event: JsonObject
  /** Who changed what, and which occurrences did not run; by ids that sort by time. Never changed. */
  readonly audit: JsonObject
  /** Runs that are open under a concurrency key, and those that wait; by owner and key. */
  readonly gate: JsonObject
  /** How a condition trigger of an automation stands; by the automation and the trigger's place in it. */
  readonly condition: JsonObject
  /** A named calendar; by owner and name. */
  readonly calendar: JsonObject
  /** A source of inbound webhooks; by its id, which is a part of its address. */
  readonly hook: JsonObject
  /** A named secret, encrypted; by owner and name. */
  readonly secret: JsonObject
  /** The saved views of a caller; by its kind and id. */
  readonly view: JsonObject
  /** The newest lines that handlers and workers wrote about a job; by job id. */
  readonly log: { readonly lines: readonly LogLineBody[] }
  /** An agent with the hashes of its tokens; by its id. Beside it, under its name, which agent has that name. */
  readonly agent: JsonObject
}

/** Room for a file that may come by an address of the store of files, until a moment of the storage's clock. */
export interface KeptRoom {
  readonly name: string
  readonly bytes: number
  readonly endsAt: number
}

export interface ScheduleRecord {
  /** The firing that was served last: its own time, not the moment when it was served. */
  readonly firedFor: number
  readonly firedAt: number
  readonly jobId: string | undefined
  /** Identifies the trigger that this record belongs to: another trigger under the same name starts over. */
  readonly trigger: string
  /** What became of the last firings, newest first. Records of older versions have none. */
  readonly recent?: readonly PastFiring[]
  /** Somebody has stopped it until further notice. */
  readonly paused?: { readonly at: number; readonly by: string }
}

/** A firing that had its job, or was left out. */
export interface PastFiring {
  readonly firedFor: number
  readonly firedAt: number
  readonly jobId: string | undefined
  /** Why it has no job. */
  readonly skipped: 'missed' | 'clock went back' | 'paused' | undefined
}
export type Kind = keyof Records

export interface Stored<T> {
  readonly value: T
  readonly version: number
}

/** What `list` can filter by. The storage keeps these beside the record and knows no more of it. */
export interface Facets {
  readonly owner?: string
  readonly status?: string
  readonly name?: string
  /** What `search` looks in. Short: the storage may read it for every record of an owner. */
  readonly text?: string
}

export type Put = {
  readonly [K in Kind]: {
    readonly kind: K
    readonly id: string
    readonly value: Records[K]
    /** Written only if the stored version is exactly one less; 1 means "must not exist yet". */
    readonly version: number
    readonly facets?: Facets
    /**
     * The record is gone so long after this commit, on the storage's clock: reads, lists and counts do not find it, and its
     * id is free again. Each put sets it again; without it the record stays.
     */
    readonly expiresMs?: number
  }
}[Kind]

/**
 * `outbox`: messages to the outside, such as webhooks. `leaders`: one item for each process that runs once in a cluster.
 * `signals`: messages between instances. They are never claimed: the hint that such an item exists is the message, and a
 * storage need not keep one that is due.
 * `firings`: the next run of each automation. `events`: what was published and has not been matched.
 */
export type Queue = 'turns' | 'tasks' | 'timers' | 'mail' | 'outbox' | 'leaders' | 'signals' | 'firings' | 'events'

/**
 * Waiting this long counts as much as one level of priority, so that nothing waits for ever behind more important work. As
 * it is the same for all items, their order never changes while they wait: it is the order of `dueAt - priority * AGEING_MS`.
 */
export const AGEING_MS = 60_000

/**
 * Something that has to happen. All spans count on the storage's own clock, from the moment the item
 * is due unless they say otherwise, so that two orchestrators with different clocks cannot disagree.
 */
export interface Item {
  readonly queue: Queue
  readonly id: string
  /** Who it is for: a client, a worker, a kind of work. Claims name the lanes they take from. */
  readonly lane: string
  /** Higher first, each level worth `AGEING_MS` of waiting; equal ones in the order in which they became due. */
  readonly priority: number
  /** Due this long after the commit. */
  readonly delayMs: number
  readonly payload: Json
  /** Not claimed for `afterMs` once due: claimable through this second lane too (work stealing). */
  readonly fallback?: { readonly lane: string; readonly afterMs: number }
  /** Expired when it has not been claimed for this long. */
  readonly unclaimedMs?: number
  /** Expired when it is not settled in so long, claimed or not. */
  readonly settleMs?: number
  /**
   * Expired when it is not settled in so long after its newest claim. Counts while that claim's lease
   * lasts: once the lease has ended before, the item is back in its queue and waits without this limit.
   */
  readonly runMs?: number
  /**
   * Claimed from its first moment, as if a claim had followed the commit at once: nobody else gets it while the lease lasts,
   * and no hint tells of it. Only for what is due. Without a holder the lease ends with the process that commits.
   */
  readonly claimed?: BornClaim
}

/** The claim that an item is born with. The caller draws `token` at random from all safe integers, so that it names no other claim. */
export interface BornClaim {
  readonly token: number
  readonly leaseMs: number
  readonly holder?: string
}

/** Names one claim of one item. A token never repeats, so an old claim is never taken for a new one. */
export interface LeaseRef {
  readonly queue: Queue
  readonly id: string
  readonly token: number
}

export interface Lease extends LeaseRef {
  readonly lane: string
  readonly priority: number
  readonly payload: Json
  /** How often the item has been claimed, this time included. Claims of the expired do not count: zero means never handed out. */
  readonly deliveries: number
  /** How long until the item expires if this claim is kept. Zero for what has expired; `undefined`: never. */
  readonly expiresInMs: number | undefined
  /**
   * The token of an earlier claim that was settled, in a process that ended before that was durable. Said of turns, by a
   * storage whose commits reach the disk later; where a commit is durable by itself there is nothing to say.
   */
  readonly settledBy?: number
  /** The job that the item is named after, if the claim asked for it and the storage had it at hand. It may be older than the item. */
  readonly job?: Stored<Job>
}

export interface ClaimOptions {
  /** Lanes to take from, best item first over all of them. Without it: every lane in turn, so that none starves. */
  readonly lanes?: readonly string[]
  readonly limit: number
  readonly leaseMs: number
  /**
   * Who will hold the lease. A named holder lives outside this process (a remote worker), and its
   * lease survives a restart of the storage; without a name the lease ends with the process.
   */
  readonly holder?: string
  /**
   * The jobs that the items are named after (`jobId.…`) are welcome too, so that nobody has to read them. A storage leaves out
   * what it would have to ask for separately, what is large, and a job that another lease of the same claim has already.
   */
  readonly brings?: 'job'
}

export interface Claimed {
  readonly leases: readonly Lease[]
  /** How long until the next item of those lanes may be claimable, if one is known. Zero: there is more now. */
  readonly nextInMs: number | undefined
}

/** What an item looks like at this moment. */
export interface ItemView {
  readonly queue: Queue
  readonly id: string
  readonly lane: string
  readonly priority: number
  readonly payload: Json
  readonly deliveries: number
  /** Zero when it is due. */
  readonly dueInMs: number
  /** The claim that holds it, while its lease lasts. */
  readonly lease: { readonly token: number; readonly holder: string | undefined; readonly endsInMs: number } | undefined
}

export interface LaneView {
  readonly lane: string
  /**
   * Items that a claim of this lane would get now (fallbacks that have come into force included). Exact up to ten; a storage
   * that can only count by reading may stop after that, so that a look each second is cheap with a million waiting.
   */
  readonly ready: number
}

/** Applied in this order: settle, remove, drop, put, enqueue. So one batch can take an item back and enqueue it again. */
export interface Batch {
  readonly put?: readonly Put[]
  /** Replaces an item of the same queue and id; a claim of the old one is lost. */
  readonly enqueue?: readonly Item[]
  readonly remove?: readonly { readonly queue: Queue; readonly id: string }[]
  /** The claim that this batch answers; its item is removed. If the claim was lost, or the item has expired under it, nothing happens. */
  readonly settle?: LeaseRef
  /** The claim under whose authority the batch is written; its item stays. If the claim was lost, or the item has expired under it, nothing happens. */
  readonly guard?: LeaseRef
  /** Records to delete, whatever their version. One that is not there is no conflict. */
  readonly drop?: readonly { readonly kind: Kind; readonly id: string }[]
}

export interface ListQuery extends Omit<Facets, 'text'> {
  /** Only ids that sort before this one: the next page. */
  readonly before?: string
  /** Only ids that sort after this one, or are it. */
  readonly from?: string
  /** Only records whose `text` facet contains this, whatever the case of its letters. */
  readonly search?: string
  readonly limit: number
  /** Any of these statuses; `status` is for one. */
  readonly statuses?: readonly string[]
  /**
   * The page ends with the record that makes it so many bytes long, as they are stored: it has one record at least, and at
   * most one beyond this. Nothing behind it is read.
   */
  readonly bytesMax?: number
  /**
   * So many records may be looked through that a filter then leaves out; a page may end before, even without any record, and
   * then says where to go on. A storage that keeps everything in memory need not count.
   */
  readonly looksMax?: number
}

export type Listed<K extends Kind> = Stored<Records[K]> & { readonly id: string }

/** One page of a list. */
export interface Listing<K extends Kind> extends ReadonlyArray<Listed<K>> {
  /** `before` of the next page, where this one ended by its bytes or its looks and there may be more. */
  readonly next?: string
}

/**
 * Whether `counts` tells records of this kind apart by their names. Only jobs: names of other kinds may be as many as
 * the records, and a storage that keeps counts in memory would hold all of them.
 */
export function isCountedByName(kind: Kind): boolean {
  return kind === 'job'
}

/**
 * Whether lists of this kind by name need an index of names. Only triggers of automations, which an event finds by their
 * topic: there may be a hundred thousand. Every other kind is listed by owner or status, and a name only narrows it.
 */
export function isIndexedByName(kind: Kind): boolean {
  return kind === 'subscription'
}

/**
 * Where everything durable lives. It owns time and atomicity and no rules: what a job becomes is
 * decided in `core`, and arrives here as a finished batch.
 *
 * `commit` orders and shows; `sync` makes durable. Between the two, later commits may build on
 * what is not yet on disk, because a crash loses the newest commits first and never one in the
 * middle. Await `sync` before you tell the outside (a reply to a client, a task to a worker).
 */
export interface Storage {
  /** The storage's clock, in milliseconds since 1970: the same for all instances, however their own clocks differ. */
  now(): Promise<number>
  read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined>
  /** Newest first by id. */
  list<K extends Kind>(kind: K, query: ListQuery): Promise<Listing<K>>
  /**
   * How many records there are of each status that any has; those without a status are not counted. Exact, and cheap
   * enough to be asked every second. `name` may be given only for kinds that `isCountedByName`.
   */
  counts(kind: Kind, facets: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>>
  /** The items as they are now, in the order asked for; `undefined` for one that is not there. */
  peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]>
  /**
   * Ids of the items that named holders have in their hands, in no order. What changes while this is asked may be in it or
   * not. As long as there are hands, and not as long as the queue; asked for when an orchestrator starts.
   */
  held(queue: Queue): Promise<readonly string[]>
  /** Lanes that hold at least one claimable item. */
  lanes(queue: Queue): Promise<readonly LaneView[]>
  /**
   * For how many milliseconds the item has been due that comes next in its lane: the longest of all lanes. `undefined` while
   * nothing is claimable. Where an item of lower priority has waited longer, that is not seen before its turn comes. As cheap as `lanes`.
   * With a lane: of that one only.
   */
  oldest(queue: Queue, lane?: string): Promise<number | undefined>
  /** Leases due items. Each is hidden from everybody else until the lease ends. */
  claim(queue: Queue, options: ClaimOptions): Promise<Claimed>
  /** Leases items that have expired (`unclaimedMs`, `settleMs`, `runMs`), also those that are held: their holders lose them. */
  claimExpired(queue: Queue, options: { readonly limit: number; readonly leaseMs: number }): Promise<Claimed>
  /**
   * Sets the end of the lease, counted from now. False for each lease that was lost.
   *
   * Zero hands the item back as if that claim had not been: its token names nothing any more, `deliveries` goes
   * down by one, `runMs` counts no longer, and if the item has not been claimed again, `unclaimedMs` counts again from
   * the moment it was due. The claim of an expiry that is handed back leaves the item expired.
   */
  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]>
  /**
   * Applies the whole batch or nothing of it. When this rejects or throws, the outcome is unknown: read before retrying. A storage
   * in this process answers at once.
   */
  commit(batch: Batch): Soon<'committed' | 'conflict'>
  /** Resolves once every commit and claim that resolved before this call is durable. */
  sync(): Soon<void>
  /** Calls `listener` with a lane whenever it may have got a claimable item. A hint: late, wrong or missing at times. */
  watch(queue: Queue, listener: (lane: string) => void): () => void
  close(): Promise<void>
}
