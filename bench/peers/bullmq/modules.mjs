export { FlowProducer, Queue, Worker } from 'bullmq'
