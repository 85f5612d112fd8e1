export { catalogueVideo, publishVideo } from './01-publish-video/blueprint.ts'
export { createStudio } from './01-publish-video/workers.ts'
