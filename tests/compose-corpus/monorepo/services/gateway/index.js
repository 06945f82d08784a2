require('../../libs/shared.js');
