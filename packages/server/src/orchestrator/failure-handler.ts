import type { Log } from '@impresario/core'
import { isImpresarioError } from '@impresario/protocol'
import { errorFields } from '../runtime/log.ts'
import type { Health } from './health.ts'

/** It is not caught there, so it ends the process. */
export function throwOutside(error: Error): void {
  setImmediate(() => {
    throw error
  })
}

/**
 * A write that failed ends the process: the next one finds what was acknowledged. Files that were deleted underneath are
 * different. The next process would begin with nothing, while this one still holds what there is: it stays, refuses
 * everything and says so, until an operator has saved what can be saved.
 */
export function failureHandler(health: Health, log: Log, stop: (error: Error) => void): (error: Error) => void {
  return (error) => {
    if (isImpresarioError(error) && error.details['reason'] === 'files_gone') {
      health.storageFailed('its files were deleted or replaced')
      log.error('the files of the storage were deleted or replaced; everything is refused until a restart', {
        ...errorFields(error),
        advice: 'as long as this process runs, Linux still has the deleted files under /proc/<its id>/fd',
      })
      return
    }
    health.storageFailed('a write failed')
    log.error('the storage failed and this process stops; what was acknowledged is safe', errorFields(error))
    stop(error)
  }
}
