import './live.css';

export default { render: () => undefined };
