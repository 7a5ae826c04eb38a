/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-HGJ23ZPU.js";import"./chunk-WE5DYMEX.js";import"./chunk-RNIMKIBM.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
