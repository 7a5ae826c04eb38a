/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-TYOAJHF4.js";import"./chunk-JVL6K2Y2.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
