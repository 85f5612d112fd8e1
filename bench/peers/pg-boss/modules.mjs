export { PgBoss } from 'pg-boss'
export { default as pg } from 'pg'
