import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { begin } from './api/session.ts';
import { takeHandedOver } from './api/token.ts';
import { App } from './App.tsx';
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';

takeHandedOver();
void begin();

const root = document.getElementById('root');
if (!root) throw new Error('the page has no place for the dashboard');
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
