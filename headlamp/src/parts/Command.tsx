import { useState } from 'react';

/** A line to type, and a button that copies it. */
export function Command({ line }: { line: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard.writeText(line).then(() => setCopied(true));
  };
  return (
    <div className="command">
      <code>{line}</code>
      <button type="button" onClick={copy}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}
