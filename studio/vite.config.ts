import { defineConfig } from 'vite'

export default defineConfig({
  base: '/studio/',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
  },
  // `npm run dev` beside a running `chimere serve`
  server: { proxy: { '/v1': 'http://127.0.0.1:8081', '/health': 'http://127.0.0.1:8081' } },
})
