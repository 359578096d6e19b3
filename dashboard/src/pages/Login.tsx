import { type SyntheticEvent, useEffect, useState } from 'react';

import { logIn } from '../api/session.ts';
import { Command } from '../parts/Copy.tsx';

/** Asks for a token, which is kept in this page's memory alone. */
export function Login({ words }: { words: string }) {
  const [token, setToken] = useState('');
  useEffect(() => {
    document.title = 'Log in · gpu-scheduler';
  }, []);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (token.trim()) void logIn(token);
  };
  return (
    <main id="main" className="alone">
      <h1 className="lead">
        {words ? 'You are logged out.' : 'Who are you?'}{' '}
        <span className="dim">The dashboard shows what your token may see.</span>
      </h1>
      {words && (
        <p role="alert" className="bad">
          {words}
        </p>
      )}
      <form onSubmit={submit}>
        <label htmlFor="token">Token of the cluster</label>
        <input
          id="token"
          type="password"
          value={token}
          autoComplete="off"
          spellCheck={false}
          autoFocus
          onChange={(event) => setToken(event.target.value)}
        />
        <div>
          <button type="submit" className="strong" disabled={!token.trim()}>
            Log in
          </button>
        </div>
      </form>
      <p className="sub">
        It stays in this page’s memory: a reload asks again, as it does behind a proxy that logs you
        in. This opens the dashboard with the token of your kubeconfig:
      </p>
      <Command line="kubectl gpu dashboard" />
      <Command
        about="or make one that lasts an hour"
        line="kubectl create token NAME -n NAMESPACE"
      />
    </main>
  );
}
