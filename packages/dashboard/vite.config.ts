import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { build, defineConfig } from 'vite'
import type { Plugin } from 'vite'

const OUT = join(import.meta.dirname, 'dist/app')

/** Built into static files without anything inline, with paths that work under every prefix. */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  plugins: [react(), tailwind(), early(), packed()],
  resolve: { conditions: ['source', 'module', 'browser', 'development|production'] },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    // Inlined files would need exceptions from the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.md' },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
  logLevel: 'warn',
})

/** A script of its own, in one piece: it runs before the application is there. */
function early(): Plugin {
  return {
    name: 'early',
    apply: 'build',
    async closeBundle() {
      await build({
        configFile: false,
        root: import.meta.dirname,
        publicDir: false,
        logLevel: 'warn',
        build: {
          outDir: OUT,
          emptyOutDir: false,
          target: 'es2022',
          reportCompressedSize: false,
          lib: { entry: 'src/early.ts', formats: ['iife'], name: 'impresarioStart', fileName: () => 'early.js' },
        },
      })
    },
  }
}

/** Below this a file is sent as it is. */
const PACKED_BYTES_MIN = 512

/** Compresses once and well what a server would compress at each request and quickly. */
function packed(): Plugin {
  return {
    name: 'packed',
    apply: 'build',
    closeBundle: {
      sequential: true,
      async handler() {
        for (const entry of await readdir(OUT, { withFileTypes: true, recursive: true })) {
          // The page is filled in at each request.
          if (!entry.isFile() || !/\.(?:js|css|svg|md)$/.test(entry.name)) continue
          const path = join(entry.parentPath, entry.name)
          const content = await readFile(path)
          if (content.length < PACKED_BYTES_MIN) continue
          const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
          await writeFile(`${path}.br`, brotliCompressSync(content, { params }))
          await writeFile(`${path}.gz`, gzipSync(content, { level: 9 }))
        }
      },
    },
  }
}
