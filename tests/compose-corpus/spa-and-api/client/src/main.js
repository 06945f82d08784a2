document.title = 'client';
