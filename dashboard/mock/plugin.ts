import type { Connect, Plugin } from 'vite';

import { answer } from './server.ts';

/** What the operator sends with every answer. */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'none'",
].join('; ');

/** The operator's interface from made-up worlds, for `vite` and `vite preview`. */
export function mock(): Plugin {
  const serve: Connect.NextHandleFunction = (request, response, next) => {
    answer(request, response).then((done) => {
      if (!done) next();
    }, next);
  };
  return {
    name: 'mock',
    configureServer: (server) => void server.middlewares.use(serve),
    configurePreviewServer: (server) => {
      server.middlewares.use((_request, response, next) => {
        response.setHeader('Content-Security-Policy', POLICY);
        response.setHeader('X-Content-Type-Options', 'nosniff');
        next();
      });
      server.middlewares.use(serve);
    },
  };
}
