/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-YJ3FWPRB.js";import"./chunk-PZEY5GUQ.js";import"./chunk-NG73KH2L.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
