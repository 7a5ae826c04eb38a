/* Licences of the libraries in this file: NOTICE.txt */
import{h as a,i as b,j as c}from"./chunk-NNOROP2I.js";import"./chunk-2FQV5QLT.js";import"./chunk-PNIJ2T6U.js";import"./chunk-RU6475AT.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
