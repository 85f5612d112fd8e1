export { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk'
export { default as pg } from 'pg'
