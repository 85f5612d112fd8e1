export { RestatePromise, serve, service } from '@restatedev/restate-sdk'
export { connect } from '@restatedev/restate-sdk-clients'
