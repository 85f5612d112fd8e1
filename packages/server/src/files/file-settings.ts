import { invalid } from '../config/config.ts'
import type { Settings } from '../config/config.ts'
import { makeDirectory } from '../config/data-directory.ts'

/** Looks at the settings of files before anything is opened. */
export function checkFileSettings(settings: Settings): void {
  const { filesDir, taskFilesDir, s3EndpointUrl, s3AccessKey, s3SecretKey } = settings
  if ((s3AccessKey === '') !== (s3SecretKey === '')) {
    const [given, missing] =
      s3AccessKey === '' ? ['S3_SECRET_KEY', 'S3_ACCESS_KEY'] : ['S3_ACCESS_KEY', 'S3_SECRET_KEY']
    throw invalid(`${given} is set, but ${missing} is missing. Set both, or neither to use what AWS keeps elsewhere.`)
  }
  if (filesDir !== '' && s3EndpointUrl === '') makeDirectory('FILES_DIR', filesDir)
  if (taskFilesDir !== '') makeDirectory('TASK_FILES_DIR', taskFilesDir)
}
