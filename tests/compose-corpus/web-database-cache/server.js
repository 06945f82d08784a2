require('node:http')
  .createServer((_, answer) => answer.end('shop\n'))
  .listen(3000);
