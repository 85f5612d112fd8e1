import type {
  Batch,
  Claimed,
  ClaimOptions,
  Facets,
  ItemView,
  Kind,
  LaneView,
  LeaseRef,
  ListQuery,
  Queue,
  Records,
  Storage,
  Stored,
} from '@impresario/core'

export type CallName = Exclude<keyof Storage, 'watch' | 'close'>

/** How one process reaches its storage: what happens to a call and to its reply. */
export interface Link {
  carry<T>(call: CallName, run: () => Promise<T>): Promise<T>
  /** A hint on its way to the process. */
  hint(run: () => void): void
}

/** The storage as one process sees it, through its link. */
export class Connection implements Storage {
  readonly #inner: Storage
  readonly #link: Link

  constructor(inner: Storage, link: Link) {
    this.#inner = inner
    this.#link = link
  }

  now(): Promise<number> {
    return this.#link.carry('now', () => this.#inner.now())
  }

  read<K extends Kind>(kind: K, id: string): Promise<Stored<Records[K]> | undefined> {
    return this.#link.carry('read', () => this.#inner.read(kind, id))
  }

  list<K extends Kind>(kind: K, query: ListQuery): Promise<readonly (Stored<Records[K]> & { readonly id: string })[]> {
    return this.#link.carry('list', () => this.#inner.list(kind, query))
  }

  counts(kind: Kind, facets: Pick<Facets, 'owner' | 'name'>): Promise<Readonly<Record<string, number>>> {
    return this.#link.carry('counts', () => this.#inner.counts(kind, facets))
  }

  peek(queue: Queue, ids: readonly string[]): Promise<readonly (ItemView | undefined)[]> {
    return this.#link.carry('peek', () => this.#inner.peek(queue, ids))
  }

  held(queue: Queue): Promise<readonly string[]> {
    return this.#link.carry('held', () => this.#inner.held(queue))
  }

  lanes(queue: Queue): Promise<readonly LaneView[]> {
    return this.#link.carry('lanes', () => this.#inner.lanes(queue))
  }

  oldest(queue: Queue, lane?: string): Promise<number | undefined> {
    return this.#link.carry('oldest', () => this.#inner.oldest(queue, lane))
  }

  claim(queue: Queue, options: ClaimOptions): Promise<Claimed> {
    return this.#link.carry('claim', () => this.#inner.claim(queue, options))
  }

  claimExpired(queue: Queue, options: { readonly limit: number; readonly leaseMs: number }): Promise<Claimed> {
    return this.#link.carry('claimExpired', () => this.#inner.claimExpired(queue, options))
  }

  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
    return this.#link.carry('renew', () => this.#inner.renew(leases, leaseMs))
  }

  commit(batch: Batch): Promise<'committed' | 'conflict'> {
    return this.#link.carry('commit', async () => this.#inner.commit(batch))
  }

  sync(): Promise<void> {
    return this.#link.carry('sync', async () => this.#inner.sync())
  }

  watch(queue: Queue, listener: (lane: string) => void): () => void {
    return this.#inner.watch(queue, (lane) => this.#link.hint(() => listener(lane)))
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
