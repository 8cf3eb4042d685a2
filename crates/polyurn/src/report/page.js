(() => {
  'use strict';
  const SVG = 'http://www.w3.org/2000/svg';
  const MOST_ZOOM = 16;

  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.setAttribute('role', 'status');
  tip.hidden = true;
  document.body.append(tip);
  let told = null;

  // Shows what a mark tells, beside a place on the screen.
  function tell(mark, x, y) {
    if (told !== mark) {
      if (told) told.classList.remove('on');
      told = mark;
      if (mark) mark.classList.add('on');
      tip.textContent = mark ? mark.dataset.tip : '';
      tip.hidden = !mark;
    }
    if (!mark) return;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
    const top = y + 14 + height > innerHeight ? y - 14 - height : y + 14;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = Math.max(4, top) + 'px';
  }

  function tellBeside(mark) {
    const box = mark.getBoundingClientRect();
    tell(mark, box.x + box.width / 2, box.y + box.height / 2);
  }

  // Zoom, hover and keys of one plot. Gives what its buttons call.
  function equip(svg, onZoom) {
    for (const title of svg.querySelectorAll('.mark > title')) {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    }
    svg.tabIndex = 0;
    const base = svg.getAttribute('viewBox').split(' ').map(Number);
    let view = base.slice();
    const pointers = new Map();
    let moved = false;

    function show(x, y, width) {
      width = Math.min(base[2], Math.max(base[2] / MOST_ZOOM, width));
      const height = width * base[3] / base[2];
      x = Math.min(base[2] - width, Math.max(0, x));
      y = Math.min(base[3] - height, Math.max(0, y));
      view = [x, y, width, height];
      svg.setAttribute('viewBox', view.map((v) => +v.toFixed(2)).join(' '));
      const zoomed = width < base[2] * 0.999;
      svg.classList.toggle('zoomed', zoomed);
      onZoom(zoomed);
    }
    const reset = () => show(0, 0, base[2]);

    // Keeps the place under the pointer where it is.
    function zoom(factor, clientX, clientY) {
      const box = svg.getBoundingClientRect();
      const across = clientX === undefined ? 0.5 : (clientX - box.x) / box.width;
      const down = clientY === undefined ? 0.5 : (clientY - box.y) / box.height;
      const width = Math.min(base[2], Math.max(base[2] / MOST_ZOOM, view[2] / factor));
      const height = width * base[3] / base[2];
      show(view[0] + across * (view[2] - width), view[1] + down * (view[3] - height), width);
    }

    function pan(dx, dy) {
      const scale = view[2] / svg.getBoundingClientRect().width;
      show(view[0] - dx * scale, view[1] - dy * scale, view[2]);
    }

    // The wheel scrolls the page unless the plot was clicked or a key says that zoom is meant.
    svg.addEventListener('wheel', (event) => {
      if (document.activeElement !== svg && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.clientX, event.clientY);
    }, { passive: false });
    svg.addEventListener('dblclick', reset);

    svg.addEventListener('pointerdown', (event) => {
      pointers.set(event.pointerId, event);
      moved = false;
      tell(event.target.closest('.mark'), event.clientX, event.clientY);
    });
    svg.addEventListener('pointermove', (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) {
        tell(event.target.closest('.mark'), event.clientX, event.clientY);
        return;
      }
      const others = [...pointers.values()].filter((other) => other.pointerId !== event.pointerId);
      if (others.length) {
        const far = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1;
        const [other] = others;
        const middle = [(event.clientX + other.clientX) / 2, (event.clientY + other.clientY) / 2];
        zoom(far(event, other) / far(before, other), middle[0], middle[1]);
      } else if (view[2] < base[2]) {
        if (!moved) svg.setPointerCapture(event.pointerId);
        moved = true;
        tell(null);
        pan(event.clientX - before.clientX, event.clientY - before.clientY);
      }
      pointers.set(event.pointerId, event);
    });
    for (const name of ['pointerup', 'pointercancel', 'pointerleave']) {
      svg.addEventListener(name, (event) => {
        pointers.delete(event.pointerId);
        if (name === 'pointerleave' && event.pointerType === 'mouse') tell(null);
      });
    }

    svg.addEventListener('keydown', (event) => {
      const marks = [...svg.querySelectorAll('.mark')];
      const ix = marks.indexOf(told);
      const step = 40;
      const keys = {
        '+': () => zoom(1.5),
        '=': () => zoom(1.5),
        '-': () => zoom(1 / 1.5),
        0: reset,
        Escape: () => tell(null),
        ArrowRight: () => event.shiftKey ? pan(-step, 0) : marks.length && tellBeside(marks[(ix + 1) % marks.length]),
        ArrowLeft: () => event.shiftKey
          ? pan(step, 0) : marks.length && tellBeside(marks[(Math.max(ix, 0) + marks.length - 1) % marks.length]),
        ArrowUp: () => event.shiftKey && pan(0, step),
        ArrowDown: () => event.shiftKey && pan(0, -step),
      };
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.startsWith('Arrow') && (event.key === 'ArrowUp' || event.key === 'ArrowDown') && !event.shiftKey) return;
      event.preventDefault();
      act();
    });
    svg.addEventListener('blur', () => tell(null));
    return { zoom, reset, base };
  }

  // A plot as a file of its own, in the colours of white paper.
  function standalone(svg, base, label) {
    const copy = svg.cloneNode(true);
    const paper = document.createElement('div');
    paper.className = 'paper';
    paper.hidden = true;
    document.body.append(paper);
    const light = getComputedStyle(paper);
    const plain = (text) => text.replace(/var\((--\w+)\)/, (_, name) => light.getPropertyValue(name).trim());
    for (const element of copy.querySelectorAll('*')) {
      for (const name of ['fill', 'stroke']) {
        if (element.hasAttribute(name)) element.setAttribute(name, plain(element.getAttribute(name)));
      }
      if (element.dataset.tip !== undefined) {
        const title = document.createElementNS(SVG, 'title');
        title.textContent = element.dataset.tip;
        element.prepend(title);
        delete element.dataset.tip;
        element.classList.remove('on');
      }
    }
    paper.remove();
    for (const name of ['class', 'tabindex', 'style']) copy.removeAttribute(name);
    copy.setAttribute('xmlns', SVG);
    copy.setAttribute('width', base[2]);
    copy.setAttribute('height', base[3]);
    copy.setAttribute('viewBox', base.join(' '));
    const ground = document.createElementNS(SVG, 'rect');
    ground.setAttribute('width', base[2]);
    ground.setAttribute('height', base[3]);
    ground.setAttribute('fill', '#ffffff');
    const title = document.createElementNS(SVG, 'title');
    title.textContent = label;
    copy.prepend(title, ground);
    return new XMLSerializer().serializeToString(copy);
  }

  function save(blob, name) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function savePng(text, base, name) {
    const image = new Image();
    image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
    await image.decode();
    const canvas = document.createElement('canvas');
    const scale = 3;
    canvas.width = base[2] * scale;
    canvas.height = base[3] * scale;
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, name));
  }

  function button(text, label, act) {
    const made = document.createElement('button');
    made.type = 'button';
    made.textContent = text;
    made.setAttribute('aria-label', label);
    made.title = label;
    made.addEventListener('click', act);
    return made;
  }

  for (const figure of document.querySelectorAll('figure')) {
    const plots = [...figure.querySelectorAll('svg')];
    if (!plots.length) continue;
    const name = figure.dataset.name;
    const tools = document.createElement('div');
    tools.className = 'tools';
    const resetButton = button('Reset', 'Show the whole plot again', () => equipped.forEach((plot) => plot.reset()));
    resetButton.hidden = true;
    const equipped = plots.map((svg) => equip(svg, (zoomed) => { resetButton.hidden = !zoomed; }));
    const zoomAll = (factor) => equipped.forEach((plot, ix) => plots[ix].getBoundingClientRect().width && plot.zoom(factor));
    // What is saved is the plot for wide pages, as in files written by the command line.
    const text = () => standalone(plots[0], equipped[0].base, plots[0].getAttribute('aria-label'));
    tools.append(
      button('+', 'Zoom in', () => zoomAll(1.5)),
      button('−', 'Zoom out', () => zoomAll(1 / 1.5)),
      resetButton,
      button('Save SVG', 'Save this plot as SVG', () => save(new Blob([text()], { type: 'image/svg+xml' }), name + '.svg')),
      button('Save PNG', 'Save this plot as PNG', () => savePng(text(), equipped[0].base, name + '.png')),
    );
    figure.append(tools);
  }

  for (const block of document.querySelectorAll('pre.copy')) {
    const made = button('Copy', 'Copy this command', () => {
      getSelection().selectAllChildren(block);
      if (navigator.clipboard) {
        navigator.clipboard.writeText(block.textContent).then(() => { made.textContent = 'Copied'; }, () => {});
      }
    });
    block.after(made);
  }
  addEventListener('scroll', () => tell(null), { passive: true });
})();
