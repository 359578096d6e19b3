import { useEffect, useState } from 'react';

/** A command line, and a button that copies it. */
export function Command({ line, about }: { line: string; about?: string }) {
  return (
    <>
      {about && <p className="sub command-about">{about}</p>}
      <div className="command">
        <pre tabIndex={0} aria-label="command">
          {line}
        </pre>
        <CopyButton text={line} />
      </div>
    </>
  );
}

function CopyButton({ text }: { text: string }) {
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(''), 2000);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('copied');
    } catch {
      // Without TLS browsers give no clipboard, except on this machine itself.
      setSaid('select and copy it');
    }
  };
  return (
    <button type="button" onClick={() => void copy()} aria-label={`copy: ${text}`}>
      {said || 'copy'}
      <span className="vh" role="status">
        {said}
      </span>
    </button>
  );
}
