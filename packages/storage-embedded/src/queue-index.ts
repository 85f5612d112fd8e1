import type { ItemView, LaneView, LeaseRef } from '@impresario/core'
import { PassingMap } from '@impresario/protocol'
import { AlarmHeap } from './alarm-heap.ts'
import type { Alarm } from './alarm-heap.ts'
import { comesBefore, viewOf } from './entry.ts'
import type { Entry } from './entry.ts'
import { Lane, LaneRotation } from './lane.ts'
import type { RestingItems } from './resting-items.ts'

/** Idle lanes are kept for the next item, up to this many or as many as are in use. */
const LANES_IDLE_MAX = 1024

/** Resting items that become entries at once when the first of them is claimed: one query for all of them. */
const WOKEN_TOGETHER = 32

export interface Claim {
  readonly token: number
  readonly until: number
  readonly holder: string | undefined
}

/**
 * One queue in memory. The state of an item at a given time follows from its timestamps alone. `advance` updates the
 * states, the lanes and their counts to that time, and must be called before every query.
 */
export class QueueIndex {
  readonly #entries = new PassingMap<string, Entry>()
  readonly #lanes = new Map<string, Lane>()
  #lanesMax = LANES_IDLE_MAX
  #readyCount = 0
  readonly #rotation = new LaneRotation()
  /** Ends of waiting periods and of leases. */
  readonly #wake = new AlarmHeap<Entry>()
  readonly #fallback = new AlarmHeap<Entry>()
  readonly #expiry = new AlarmHeap<Entry>()
  /** Entries in state `expired`, in the order in which they expired. */
  readonly #expired = new AlarmHeap<Entry>()
  #resting: RestingItems | undefined = undefined
  #read: (id: string, count: number) => readonly Entry[] = () => []
  /** The time of the last `advance`. */
  #now = 0

  get(id: string): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry !== undefined || this.#resting === undefined) return entry
    const position = this.#resting.find(id)
    return position === undefined ? undefined : this.#wakeUp(position, 1)
  }

  /** How many items are in memory. */
  get loaded(): number {
    return this.#entries.size
  }

  /** Items that stay in the journal until they are needed, and how to read them then. Once, after all others were added. */
  rest(resting: RestingItems, now: number, read: (id: string, count: number) => readonly Entry[]): void {
    this.#resting = resting
    this.#read = read
    this.#now = now
    for (const [name, restingLane] of resting.settle()) {
      const lane = this.#laneNamed(name)
      lane.resting = restingLane
      this.#readyCount += restingLane.left
      this.#rotation.push(lane)
    }
  }

  /** Adds a new or reloaded entry; its id must be free. */
  add(entry: Entry, now: number): void {
    this.#entries.set(entry.id, entry)
    this.#watchExpiry(entry)
    if (entry.fallbackAt !== Infinity) entry.fallback = this.#fallback.push(entry.fallbackAt, entry)
    if (entry.leasedUntil > now) this.#sleep(entry, 'held', entry.leasedUntil)
    else if (entry.dueAt > now) this.#sleep(entry, 'waiting', entry.dueAt)
    else this.#makeReady(entry)
  }

  remove(entry: Entry): void {
    this.#leaveState(entry, 'held')
    entry.gone = true
    this.#entries.delete(entry.id)
    if (entry.wake !== undefined) this.#wake.cancel(entry.wake)
    if (entry.fallback !== undefined) this.#fallback.cancel(entry.fallback)
    if (entry.expiry !== undefined) this.#expiry.cancel(entry.expiry)
  }

  /** The best ready entry of these lanes. */
  bestOf(lanes: readonly string[]): Entry | undefined {
    let best: Entry | undefined
    for (const name of lanes) {
      const lane = this.#lanes.get(name)
      const first = lane === undefined ? undefined : this.#firstOf(lane)
      if (first !== undefined && (best === undefined || comesBefore(first, best))) best = first
    }
    return best
  }

  /** The best ready entry of the next lane in rotation; that lane goes to the end of the row. */
  nextInRotation(): Entry | undefined {
    for (;;) {
      const lane = this.#rotation.shift()
      if (lane === undefined) return undefined
      const first = this.#firstOf(lane)
      if (first === undefined) continue
      this.#rotation.push(lane)
      return first
    }
  }

  hasReady(lanes: readonly string[] | undefined): boolean {
    if (lanes === undefined) return this.#readyCount > 0
    return this.#readyCount > 0 && lanes.some((lane) => (this.#lanes.get(lane)?.readyCount ?? 0) > 0)
  }

  firstExpired(): Entry | undefined {
    return this.#expired.first()?.entry
  }

  lease(entry: Entry, claim: Claim, now: number): void {
    const { until } = claim
    const isExpiryClaim = entry.state === 'expired'
    entry.token = claim.token
    entry.holder = claim.holder
    entry.leasedUntil = until
    entry.isExpiryClaim = isExpiryClaim
    this.#leaveState(entry, 'held')
    this.#sleep(entry, isExpiryClaim ? 'closing' : 'held', until)
    if (isExpiryClaim) return
    entry.deliveries++
    if (entry.runMs === undefined) return
    entry.runAt = now + entry.runMs
    this.#watchExpiry(entry)
  }

  /** The entry that this claim still refers to: it has not been claimed again, removed or replaced since. */
  find(ref: LeaseRef): Entry | undefined {
    const entry = this.#entries.get(ref.id)
    return entry !== undefined && entry.token === ref.token && ref.token !== 0 ? entry : undefined
  }

  /** `until` is in the future. An end that is not counts as a hand-back. */
  renew(entry: Entry, until: number, now: number): void {
    entry.leasedUntil = until
    if (entry.isExpiryClaim) {
      this.#leaveState(entry, 'held')
      this.#sleep(entry, 'closing', until)
    } else if (entry.expiresAt > now) {
      if (entry.state === 'ready') this.#leaveState(entry, 'held')
      this.#sleep(entry, 'held', until)
    } else if (entry.state === 'ready') {
      // The lease used to end before the run was out of time, and now covers that moment.
      this.#expire(entry, now)
    }
  }

  /** Undoes the newest claim. */
  handBack(entry: Entry, now: number): void {
    entry.token = 0
    entry.holder = undefined
    entry.leasedUntil = now
    if (!entry.isExpiryClaim) {
      entry.deliveries--
      entry.runAt = Infinity
    }
    if (entry.expiresAt <= now) {
      if (entry.state !== 'expired') this.#expire(entry, now)
      return
    }
    if (entry.state !== 'ready') {
      this.#leaveState(entry, 'held')
      this.#makeReady(entry)
    }
    this.#watchExpiry(entry)
  }

  /** Updates all states to this time. */
  advance(now: number): void {
    this.#now = now
    if (this.#resting !== undefined) this.#ringResting(this.#resting, now)
    this.#ringWake(now)
    this.#ringFallback(now)
    this.#ringExpiry(now)
  }

  /** When an item that is not claimable now may become claimable. Exact or too early, never too late. */
  nextReadyAt(): number {
    const wake = this.#firstWake()?.at ?? Infinity
    const fallback = this.#fallback.first()?.at ?? Infinity
    return Math.min(wake, fallback, this.#resting?.nextAlarm()?.at ?? Infinity)
  }

  nextExpiredAt(): number {
    const expiry = this.#expiry.first()?.at ?? Infinity
    const wake = this.#firstWake()?.at ?? Infinity
    return Math.min(wake, expiry, this.#resting?.nextAlarm()?.at ?? Infinity)
  }

  view(id: string, now: number): ItemView | undefined {
    const entry = this.get(id)
    return entry === undefined ? undefined : viewOf(entry, now)
  }

  /** Scans all entries, which takes a tenth of a second for a million. Called rarely. */
  held(): readonly string[] {
    const ids: string[] = []
    for (const { id, state, holder } of this.#entries.values()) {
      if (state === 'held' && holder !== undefined) ids.push(id)
    }
    return ids
  }

  laneViews(): readonly LaneView[] {
    const views: LaneView[] = []
    for (const { name, readyCount } of this.#lanes.values()) {
      if (readyCount > 0) views.push({ lane: name, ready: readyCount })
    }
    return views
  }

  /** Of the items that come next in their lanes, or in this lane, when the oldest became due. */
  oldestDueAt(name?: string): number | undefined {
    let oldest: number | undefined
    const one = name === undefined ? undefined : this.#lanes.get(name)
    const lanes = name === undefined ? this.#lanes.values() : one === undefined ? [] : [one]
    for (const lane of lanes) {
      const dueAt = lane.readyCount === 0 ? undefined : this.#firstOf(lane)?.dueAt
      if (dueAt !== undefined && (oldest === undefined || dueAt < oldest)) oldest = dueAt
    }
    return oldest
  }

  /** The best ready entry of a lane. What rests and is better is woken first. */
  #firstOf(lane: Lane): Entry | undefined {
    for (;;) {
      const first = lane.first()
      const { resting: restingLane } = lane
      const items = this.#resting
      if (restingLane === undefined || items === undefined) return first
      const position = restingLane.first(items)
      if (position === undefined) {
        lane.resting = undefined
        return first
      }
      if (first !== undefined && !items.comesBefore(position, first)) return first
      this.#wakeUp(position, restingLane.runFrom(position, items, WOKEN_TOGETHER))
    }
  }

  /** Makes entries of so many resting items side by side, and gives the first of them. */
  #wakeUp(position: number, count: number): Entry {
    const items = this.#resting
    if (items === undefined) throw new Error('Nothing rests.')
    const id = items.idAt(position)
    let woken: Entry | undefined
    let next = position
    for (const entry of this.#read(id, count)) {
      // New items may lie between them; these are in memory already.
      if (next === position + count || entry.id !== items.idAt(next)) continue
      woken ??= entry
      if (items.take(next)) this.#leaveRest(entry.lane)
      this.add(entry, this.#now)
      next += 1
    }
    if (woken?.id !== id) throw new Error(`The item ${id} is not in the journal.`)
    if (items.left === 0) this.#resting = undefined
    return woken
  }

  #leaveRest(name: string): void {
    this.#readyCount--
    const lane = this.#lanes.get(name)
    if (lane?.resting !== undefined) lane.resting.left--
  }

  #ringResting(items: RestingItems, now: number): void {
    for (let alarm = items.nextAlarm(); alarm !== undefined && alarm.at <= now; alarm = items.nextAlarm()) {
      this.#wakeUp(alarm.position, 1)
    }
  }

  #makeReady(entry: Entry): void {
    entry.state = 'ready'
    this.#readyCount++
    this.#addTo(entry.lane, entry)
    if (entry.fallbackOn) this.#addToFallback(entry)
  }

  #addToFallback(entry: Entry): void {
    if (entry.fallbackLane !== undefined) this.#addTo(entry.fallbackLane, entry)
  }

  #laneNamed(name: string): Lane {
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      if (this.#lanes.size >= this.#lanesMax) this.#sweepLanes()
      lane = new Lane(name)
      this.#lanes.set(name, lane)
    }
    return lane
  }

  #addTo(name: string, entry: Entry): void {
    const lane = this.#laneNamed(name)
    // One string per lane instead of one per item.
    if (entry.lane === name) entry.lane = lane.name
    lane.add(entry)
    this.#rotation.push(lane)
  }

  #sweepLanes(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.readyCount > 0 || lane.inRotation) continue
      lane.clear()
      this.#lanes.delete(lane.name)
    }
    this.#lanesMax = Math.max(LANES_IDLE_MAX, 2 * this.#lanes.size)
  }

  /** Removes the entry from the structures that its present state put it into. */
  #leaveState(entry: Entry, next: 'held' | 'expired'): void {
    if (entry.state === 'expired' && entry.wake !== undefined) {
      this.#expired.cancel(entry.wake)
      entry.wake = undefined
    }
    const wasReady = entry.state === 'ready'
    entry.state = next
    if (!wasReady) return
    this.#readyCount--
    this.#lanes.get(entry.lane)?.leave()
    if (entry.fallbackOn && entry.fallbackLane !== undefined) this.#lanes.get(entry.fallbackLane)?.leave()
  }

  #sleep(entry: Entry, state: 'waiting' | 'held' | 'closing', until: number): void {
    entry.state = state
    if (entry.wake !== undefined) {
      // An alarm that rings too early is set later when it rings, so renewals cost nothing.
      if (entry.wake.at <= until) return
      this.#wake.cancel(entry.wake)
    }
    entry.wake = this.#wake.push(until, entry)
  }

  /** In the state `expired` the alarm field holds the entry's position among the expired entries. */
  #expire(entry: Entry, now: number): void {
    if (entry.wake !== undefined) this.#wake.cancel(entry.wake)
    entry.wake = undefined
    if (entry.expiry !== undefined) this.#expiry.cancel(entry.expiry)
    entry.expiry = undefined
    this.#leaveState(entry, 'expired')
    entry.wake = this.#expired.push(entry.expiresAt < now ? entry.expiresAt : now, entry)
  }

  /** Ensures that an alarm rings in time. One that rings too early is set later when it rings. */
  #watchExpiry(entry: Entry): void {
    const at = entry.expiresInHandAt
    if (at === Infinity) return
    if (entry.expiry !== undefined) {
      if (entry.expiry.at <= at) return
      this.#expiry.cancel(entry.expiry)
    }
    entry.expiry = this.#expiry.push(at, entry)
  }

  #ringWake(now: number): void {
    for (;;) {
      const alarm = this.#firstWake()
      const entry = alarm?.entry
      if (alarm === undefined || entry === undefined || alarm.at > now) return
      this.#wake.dropFirst()
      entry.wake = undefined
      if (entry.state === 'closing') this.#expire(entry, now)
      else this.#makeReady(entry)
    }
  }

  /** The first alarm that is still valid. Stale ones before it are dropped or corrected. */
  #firstWake(): Alarm<Entry> | undefined {
    for (;;) {
      const alarm = this.#wake.first()
      const entry = alarm?.entry
      if (alarm === undefined || entry === undefined) return undefined
      if (entry.state === 'ready') {
        this.#wake.dropFirst()
        entry.wake = undefined
        continue
      }
      const until = entry.state === 'waiting' ? entry.dueAt : entry.leasedUntil
      if (until <= alarm.at) return alarm
      this.#wake.delayFirst(until)
    }
  }

  #ringFallback(now: number): void {
    for (;;) {
      const alarm = this.#fallback.first()
      const entry = alarm?.entry
      if (alarm === undefined || entry === undefined || alarm.at > now) return
      this.#fallback.dropFirst()
      entry.fallback = undefined
      entry.fallbackOn = true
      if (entry.state === 'ready') this.#addToFallback(entry)
    }
  }

  #ringExpiry(now: number): void {
    for (;;) {
      const alarm = this.#expiry.first()
      const entry = alarm?.entry
      if (alarm === undefined || entry === undefined || alarm.at > now) return
      if (entry.expiresAt <= now) {
        this.#expire(entry, now)
        continue
      }
      // Claimed since the alarm was set, or released by its holder before its run was out of time.
      const next = entry.runAt > now ? entry.expiresInHandAt : entry.expiresAt
      if (next === Infinity) {
        this.#expiry.dropFirst()
        entry.expiry = undefined
      } else this.#expiry.delayFirst(next)
    }
  }
}
