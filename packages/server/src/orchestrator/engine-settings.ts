import type { EngineOptions, EngineSettings } from '@impresario/engine'
import type { Settings } from '../config/config.ts'
import { backgroundSettings } from '../config/schedules.ts'
import { admissionBounds } from '../limits/admission-service.ts'
import { VERSION } from '../runtime/version.ts'
import { retentionOf } from './history-service.ts'
import { isShared } from './storage.ts'

/** What the engine is told of the settings of the server. */
export function engineSettings(settings: Settings): Partial<EngineSettings> {
  return {
    executorConcurrencyMax: settings.executorMaxConcurrentJobs,
    executorBytesMax: admissionBounds(0).jobBytesMax,
    workerBytesMax: admissionBounds(0).jobBytesMax,
    workerLeaseMs: settings.workerLeaseSeconds * 1_000,
    workerTtlMs: settings.workerHealthCheckIntervalSeconds * 2_000,
    pickupMs: settings.workerPickupSeconds * 1_000,
    isShared: isShared(settings.storageUrl),
    ...backgroundSettings(settings),
    ...retentionOf(settings),
  }
}

/** Who this instance is, for the others on its storage. */
export function identityOf({ instanceId }: Pick<Settings, 'instanceId'>): EngineOptions['identity'] {
  return { name: instanceId, version: VERSION, startedAt: performance.timeOrigin / 1_000 }
}
