export { FirstInOrder } from './ports/first-in-order.ts'
export { listingOf, nextPage } from './ports/listing.ts'
export { overrideStorage } from './ports/override-storage.ts'
export { AGEING_MS, isCountedByName, isIndexedByName } from './ports/storage.ts'
export type * from './ports/storage.ts'
export { KINDS, QUEUES, markOf, markText, mustBeOwn, mustNotBeTransferred } from './ports/transfer.ts'
export type * from './ports/transfer.ts'
export type * from './ports/runtime.ts'
export { shardSuffix } from './ports/shard-suffix.ts'
export { WOKEN } from './ports/wake.ts'
export { wallTime } from './ports/wall-time.ts'
export { foldedText } from './text/folded-text.ts'
export { didYouMean, nearWord } from './text/near-word.ts'
export { roughJsonLength } from './text/rough-json-length.ts'
export { jsonObjectCopy, jsonSize, storedCopy } from './blueprint/json-copy.ts'
export { sha256 } from './text/sha256.ts'
export type * from './job/action.ts'
export type * from './job/event.ts'
export type * from './job/effect.ts'
export { OUTCOMES, isEnded } from './job/job.ts'
export type * from './job/job.ts'
export { isKnownEvent, isSameEvent } from './job/event-wait.ts'
export { inboxId, listenerId, listenersOf, nextFor, post, reached } from './job/inbox.ts'
export type { Inbox, Listener } from './job/inbox.ts'
export { waitReason, waitReasons } from './job/reason.ts'
export { resultsUpTo } from './job/result.ts'
export type { StateResult } from './job/result.ts'
export { isRepeated } from './job/command.ts'
export type { Command, CommandEvent } from './job/command.ts'
export { decide, ignoredResult } from './job/decide.ts'
export { asksForTurnNow, followedBy } from './job/sequel.ts'
export { approvalOf, outboxMessage, pendingDelivery } from './job/outbox.ts'
export type { Approval, OutboxMessage, WebhookBody } from './job/outbox.ts'
export {
  besideJobId,
  childJobId,
  deliveryId,
  messageId,
  parseDeliveryId,
  shownJobId,
  jobOfItem,
  taskId,
  timerId,
  turnId,
} from './job/identity.ts'
export type { DeliveryRef } from './job/identity.ts'
export { fateOf } from './job/fate.ts'
export type { Fate } from './job/fate.ts'
export { contradictions, wakeUps } from './job/invariants.ts'
export type { AwaitedChild, WakeUpItem, WakeUps } from './job/invariants.ts'
export type * from './blueprint/script.ts'
export type * from './blueprint/blueprint.ts'
export type * from './worker/worker.ts'
export { NO_DEEDS, REPUTATION_RULES, STANDING_WINDOW_MS, countDeeds, deedOf, judge } from './worker/standing.ts'
export type { Deed, Deeds, ReputationRules, Standing, Tally } from './worker/standing.ts'
export { firingAfter, firingUpTo } from './schedule/firing.ts'
export type { Timetable } from './schedule/firing.ts'
export { RECENT_MAX, pausedRecord, resumedRecord } from './schedule/pause.ts'
export { plan } from './schedule/plan.ts'
export type { Plan } from './schedule/plan.ts'
export { CATCH_UP_DEFAULT, SCHEDULER_CLIENT, triggerKey } from './schedule/schedule.ts'
export type { Misfire, Schedule, Trigger } from './schedule/schedule.ts'
export { changedFields, newWorkerRecord, mergeHeartbeat } from './worker/registration.ts'
export type { NewWorker, WorkerPatch } from './worker/registration.ts'
export { assess } from './worker/liveness.ts'
export { backoffMs } from './retry/backoff.ts'
export { costOf, isStaying } from './dispatch/demand.ts'
export type { Candidate, Demand } from './dispatch/demand.ts'
export { match, matches } from './dispatch/match.ts'
export type { Mismatch, MismatchReason } from './dispatch/match.ts'
export { describeMismatch } from './dispatch/mismatch.ts'
export { LaneReader, laneMatchesWorker, parseLane, requirementLane, workerLane, workerOfLane } from './dispatch/lane.ts'
export type { WaitingLane } from './dispatch/lane.ts'
export { CRITERIA, STRATEGIES, isStrategyName, questionOf, strategyNamed, strategySet } from './dispatch/strategies.ts'
export type { Criterion, Question, Strategies, Strategy } from './dispatch/strategies.ts'
export { strategiesWith } from './dispatch/trust.ts'
export { rank } from './dispatch/rank.ts'
export type { Ranked } from './dispatch/rank.ts'
export { WorkerIndex } from './dispatch/worker-index.ts'
export { explain, Explainer } from './dispatch/explain.ts'
export type { ExplainOptions, Explanation, Verdict } from './dispatch/explain.ts'
export { child } from './blueprint/actions.ts'
export type * from './blueprint/actions.ts'
export { checkBlueprint } from './blueprint/check.ts'
export type { Check } from './blueprint/check.ts'
export type {
  AggregatorContext,
  Context,
  GatheringContext,
  LooseHistory,
  ReceivedEvent,
  UndoContext,
} from './blueprint/context.ts'
export type * from './blueprint/outcome.ts'
export { blueprint, isBlueprint } from './blueprint/define.ts'
export type * from './blueprint/define.ts'
export { createDictionaryStore } from './blueprint/dictionary-store.ts'
export type { DictionaryStore } from './blueprint/dictionary-store.ts'
export { durationMs } from './blueprint/duration.ts'
export { GRAPH_NEUTRAL, toDot } from './blueprint/graph.ts'
export type { DotOptions, DrawableBlueprint } from './blueprint/graph.ts'
export { POLICY_DEFAULTS, completePolicy } from './blueprint/policy.ts'
export type { PolicyDefaults } from './blueprint/policy.ts'
export { createBlueprintRegistry } from './blueprint/registry.ts'
export type { BlueprintRegistry } from './blueprint/registry.ts'
export type {
  AnyState,
  Condition,
  ConditionalState,
  HandlerOptions,
  StateBuilders,
  StateDefinition,
} from './blueprint/states.ts'
export type { UndoActions, UndoToken } from './blueprint/undo.ts'
export { compileExpression } from './expression/expression.ts'
export type { CompiledExpression, ExpressionOptions, ExpressionScope } from './expression/expression.ts'
export { isoInstant } from '@impresario/recurrence'
