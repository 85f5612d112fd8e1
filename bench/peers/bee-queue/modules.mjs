export { default as Queue } from 'bee-queue'
