export { Logger, makeWorkerUtils, run } from 'graphile-worker'
export { default as pg } from 'pg'
